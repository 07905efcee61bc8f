package jsonwire_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/jsonwire"
)

// Embedded types of fuzzed structs. Some of their field names also occur outside.
type (
	Fuzzed1 struct {
		A int
		B string `json:"b,omitempty"`
	}
	Fuzzed2 struct {
		A string
		C *int `json:"c,omitzero"`
		Fuzzed1
	}
	Fuzzed3 struct {
		*Fuzzed2 `json:",omitempty"`
		B        []byte `json:"b"`
	}
)

// fuzzedTypes are the types that the types of fuzzed fields are built from.
var fuzzedTypes = []reflect.Type{
	reflect.TypeFor[bool](), reflect.TypeFor[int](), reflect.TypeFor[uint8](), reflect.TypeFor[float64](), reflect.TypeFor[float32](),
	reflect.TypeFor[string](), reflect.TypeFor[[]byte](), reflect.TypeFor[any](), reflect.TypeFor[json.Number](),
	reflect.TypeFor[json.RawMessage](), reflect.TypeFor[time.Time](), reflect.TypeFor[valueText](), reflect.TypeFor[pointerJSON](),
	reflect.TypeFor[zeroPointer](), reflect.TypeFor[Fuzzed1](), reflect.TypeFor[Fuzzed3](),
}

// typ returns a type.
func (s *source) typ(depth int) reflect.Type {
	of := func() reflect.Type { return s.typ(depth + 1) }
	kind := s.byte() % 16
	if depth > 4 {
		kind = 15
	}
	switch kind {
	case 0:
		return reflect.PointerTo(of())
	case 1:
		return reflect.SliceOf(of())
	case 2:
		return reflect.ArrayOf(int(s.byte()%3), of())
	case 3:
		key := []reflect.Type{reflect.TypeFor[string](), reflect.TypeFor[int8](), reflect.TypeFor[uint32](), reflect.TypeFor[intText]()}
		return reflect.MapOf(key[s.byte()%4], of())
	case 4, 5:
		return s.structType(depth)
	}
	return fuzzedTypes[int(s.byte())%len(fuzzedTypes)]
}

// structType returns a struct type with tags.
func (s *source) structType(depth int) reflect.Type {
	names := []string{"", "", "", "a", "b", "A", "-", "<>&", "é", "a b", "\\", "'", "c"}
	options := []string{"", "", ",omitempty", ",omitzero", ",string", ",omitempty,string", ",omitzero,omitempty", ",", ",unknown"}
	var fields []reflect.StructField
	for i := range s.byte() % 8 {
		f := reflect.StructField{Name: fmt.Sprintf("F%d", i)}
		if i == 0 && s.byte()%3 == 0 { // reflect can embed only the first field
			f.Type = []reflect.Type{reflect.TypeFor[Fuzzed1](), reflect.TypeFor[Fuzzed2](), reflect.TypeFor[Fuzzed3](), reflect.TypeFor[*Fuzzed2]()}[s.byte()%4]
			f.Anonymous, f.Name = true, f.Type.Name()
			if f.Name == "" {
				f.Name = f.Type.Elem().Name()
			}
		} else {
			f.Type = s.typ(depth + 1)
		}
		tag := names[int(s.byte())%len(names)] + options[int(s.byte())%len(options)]
		if s.byte()%8 != 0 {
			f.Tag = reflect.StructTag(fmt.Sprintf("json:%q", tag))
		}
		fields = append(fields, f)
	}
	return reflect.StructOf(fields)
}

// set fills a value.
func (s *source) set(v reflect.Value, depth int) {
	if len(s.data) == 0 || depth > 8 || s.byte()%8 == 0 {
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8:
		if v.SetInt(int64(s.word())); v.Type() == reflect.TypeFor[intText]() {
			v.SetInt(int64(s.byte() % 9))
		}
	case reflect.Uint8, reflect.Uint32:
		v.SetUint(s.word())
	case reflect.Float64, reflect.Float32:
		v.SetFloat(float64(int64(s.word())) / float64(1+s.byte()))
	case reflect.String:
		v.SetString(s.string())
	case reflect.Interface:
		v.Set(reflect.ValueOf([]any{s.string(), float64(s.byte()), nil}[s.byte()%2]))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		s.set(v.Elem(), depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), int(s.byte()%4), 4))
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			s.set(v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range s.byte() % 4 {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			s.set(key, depth+1)
			s.set(value, depth+1)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				s.set(v.Field(i), depth+1)
			}
		}
	}
}

func randomBytes(seed uint64, n int) []byte {
	b, random := make([]byte, n), rand.New(rand.NewPCG(seed, 1))
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return b
}

// FuzzTypes compares the encoder with encoding/json for fuzzed types, and then the decoder with the encoded text.
func FuzzTypes(f *testing.F) {
	f.Add(uint16(0), []byte{})
	for shape := range uint16(50) {
		f.Add(shape, randomBytes(uint64(shape)+1, 300))
	}
	types := make([]reflect.Type, 2048) // reflect never frees struct types
	f.Fuzz(func(t *testing.T, shape uint16, data []byte) {
		typ := &types[int(shape)%len(types)]
		if *typ == nil {
			*typ = (&source{data: randomBytes(uint64(shape)%uint64(len(types)), 200)}).structType(0)
		}
		v := reflect.New(*typ)
		(&source{data: data}).set(v.Elem(), 0)
		for _, value := range []any{v.Interface(), v.Elem().Interface()} {
			for _, m := range modes {
				got, err := jsonwire.AppendValue([]byte(before), value, m.opts)
				compare(t, fmt.Sprintf("%s: %T", m.name, value), got, err, value, m.opts)
			}
		}
		text, err := json.Marshal(v.Interface())
		if err != nil {
			return
		}
		got, want := reflect.New(v.Type().Elem()), reflect.New(v.Type().Elem())
		wantErr := json.Unmarshal(text, want.Interface())
		took := jsonwire.DecoderFor(v.Type().Elem()).Try(text, got.Interface(), jsonwire.Limits{}, &fixedRoom{left: 1 << 30})
		if took != (wantErr == nil) || took && !reflect.DeepEqual(got.Interface(), want.Interface()) {
			t.Fatalf("%s into %T:\ngot  %v %+v\nwant %v %+v", text, want.Elem().Interface(), took, got.Elem(), wantErr, want.Elem())
		}
	})
}
