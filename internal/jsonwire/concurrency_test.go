package jsonwire_test

import (
	"encoding/json"
	"reflect"
	"sync"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/jsonwire"
)

// Types that no other test compiles.
type (
	freshTree struct {
		Left, Right *freshTree
		Leaves      []freshLeaf
		ByName      map[string]freshTree
		Any         any
	}
	freshLeaf struct {
		Tree *freshTree
		N    int
	}
	freshBox[T any] struct{ In T }
)

// Many goroutines compile the same new types at once, including recursive ones.
func TestConcurrentCompilation(t *testing.T) {
	leaf := freshLeaf{&freshTree{}, 1}
	tree := freshTree{Left: &freshTree{Any: leaf}, Leaves: []freshLeaf{leaf}, ByName: map[string]freshTree{"x": {}}}
	values := []any{leaf, &leaf, tree, &tree, freshBox[freshTree]{tree}, freshBox[freshBox[any]]{freshBox[any]{leaf}}}
	for n := range 100 { // enough types to make the table grow several times
		values = append(values, reflect.New(reflect.ArrayOf(n, reflect.TypeFor[freshLeaf]())).Interface())
	}
	want := make([]string, len(values))
	for i, v := range values {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		want[i] = string(b)
	}
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			for i := range values {
				i = (i*7 + g*13) % len(values)
				got, err := jsonwire.AppendValue(nil, values[i], jsonwire.Options{})
				if err != nil || string(got) != want[i] {
					t.Errorf("%T: got %s, %v, want %s", values[i], got, err, want[i])
				}
			}
			got, err := jsonwire.Append(nil, &tree, jsonwire.Options{})
			if err != nil || string(got) != want[2] {
				t.Errorf("Append: got %s, %v, want %s", got, err, want[2])
			}
		})
	}
	wg.Wait()
}

// Many goroutines compile decoders at once, for types that no other test decodes.
func TestConcurrentDecoders(t *testing.T) {
	text := []byte(`{"Left":{"Leaves":[{"N":1,"Tree":{"Any":[1]}}]},"ByName":{"x":{"Right":null}}}`)
	types := []reflect.Type{reflect.TypeFor[freshTree](), reflect.TypeFor[*freshTree](), reflect.TypeFor[freshBox[freshTree]](), reflect.TypeFor[map[string]freshTree]()}
	for n := range 20 {
		types = append(types, reflect.ArrayOf(n, reflect.TypeFor[freshTree]()))
	}
	want := reflect.New(types[0])
	if err := json.Unmarshal(text, want.Interface()); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			for i := range types {
				typ := types[(i*7+g*3)%len(types)]
				v := reflect.New(typ)
				err := jsonwire.DecoderFor(typ).Decode(text, v.Interface(), jsonwire.Limits{})
				if typ == types[0] && (err != nil || !reflect.DeepEqual(v.Interface(), want.Interface())) {
					t.Errorf("%v: %v", typ, err)
				}
			}
		})
	}
	wg.Wait()
}
