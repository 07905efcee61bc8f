package jsonwire_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/dunlinhttp/dunlin/internal/invariants"
	"github.com/dunlinhttp/dunlin/internal/jsonwire"
)

type user struct {
	Id         int
	Age        int
	First_Name string
	Last_Name  string
	Framework  string
}

func users(n int) []user {
	us := make([]user, n)
	for i := range us {
		us[i] = user{i + 1, 25, fmt.Sprint("First_name", i+1), fmt.Sprint("Last_Name", i+1), "dunlin"}
	}
	return us
}

type plain struct {
	B     bool
	I8    int8
	U64   uint64 `json:",omitempty"`
	F32   float32
	F64   float64 `json:",string"`
	S     string
	Esc   string
	Twice string `json:",string"`
	Num   json.Number
	Bytes []byte
	Time  time.Time  `json:",omitzero"`
	When  *time.Time `json:",omitempty"`
	Users []user
	Array [3]int
	Next  *plain
	Any   any
	Anys  []any
	Names map[string]string
	Deep  map[string]map[string]any
	inner
}

// allocs checks the number of allocations of a call, after some calls to warm up.
func allocs(t *testing.T, what string, want float64, f func()) {
	t.Helper()
	for range 3 { // compile plans, grow the buffer, fill pools
		f()
	}
	if invariants.Enabled {
		return // the race detector allocates and empties pools at random
	}
	if got := testing.AllocsPerRun(200, f); got != want {
		t.Errorf("%s: got %v allocations, want %v", what, got, want)
	}
}

func TestAllocations(t *testing.T) {
	var buf []byte
	o := jsonwire.Options{}
	now := time.Now()
	v := plain{
		S: "text", Esc: "<é\n\u2028\xff>", Twice: "\"", Num: "12", Bytes: []byte("b"), Time: now, When: &now, Users: users(3),
		Next: &plain{}, Any: user{}, Anys: []any{1, "s", 1.5, nil, true, &now, []any{}}, F64: 1.25e-7,
		Names: map[string]string{"b": "1", "a": "2"},
		Deep:  map[string]map[string]any{"x": {"y": 1.0, "z": []any{"s"}}},
	}
	us := users(100)
	var boxed any = &v
	allocs(t, "Append", 0, func() { buf, _ = jsonwire.Append(buf[:0], &v, o) })
	allocs(t, "AppendValue of a pointer", 0, func() { buf, _ = jsonwire.AppendValue(buf[:0], boxed, o) })
	allocs(t, "a slice", 0, func() { buf, _ = jsonwire.Append(buf[:0], &us, o) })
	allocs(t, "a time", 0, func() { buf, _ = jsonwire.Append(buf[:0], &now, o) })
	allocs(t, "a map", 0, func() { buf, _ = jsonwire.Append(buf[:0], &v.Deep, o) })
	allocs(t, "a string", 0, func() { buf = jsonwire.AppendString(buf[:0], v.Esc, o) })
	raw := json.RawMessage(`{"a": [1, 2]}`)
	allocs(t, "raw JSON", 0, func() { buf, _ = jsonwire.Append(buf[:0], &raw, o) })
}

// A local value stays on the stack, even if a method of the user's type writes a part of it.
func TestLocalsDoNotEscape(t *testing.T) {
	var buf []byte
	allocs(t, "a local struct", 0, func() {
		v := struct {
			user
			Text [4]string
		}{user{1, 2, "a", "b", "c"}, [4]string{"d", "e"}}
		buf, _ = jsonwire.Append(buf[:0], &v, jsonwire.Options{})
	})
	allocs(t, "a local struct with a method", 2, func() { // both by the method
		v := struct {
			A int
			T intText
		}{1, 100}
		buf, _ = jsonwire.Append(buf[:0], &v, jsonwire.Options{})
	})
}

// The target of a pointer goes to the heap, because a user's method might retain it; only the value itself can stay on the
// stack.
func TestPointerTargetsEscape(t *testing.T) {
	var buf []byte
	allocs(t, "a pointer to a local", 1, func() {
		n := 7
		v := struct{ N *int }{&n}
		buf, _ = jsonwire.Append(buf[:0], &v, jsonwire.Options{})
	})
}

// growsStack is encoded from the stack while the stack has to grow, which moves the value.
type growsStack struct {
	Before int
	Grow   stackEater
	After  string
	Deep   *growsStack
}

type stackEater int

func (s stackEater) MarshalJSON() ([]byte, error) {
	if growStack(int(s)) < 0 {
		return nil, errFailing
	}
	runtime.GC()
	return []byte(`"eaten"`), nil
}

//go:noinline
func growStack(depth int) int {
	var frame [512]byte
	frame[depth%512] = 1
	if depth == 0 {
		return int(frame[0])
	}
	return growStack(depth-1) + int(frame[depth%512])
}

func TestStackMovesWhileEncoding(t *testing.T) {
	done := make(chan string)
	go func() { // a new goroutine: a small stack
		v := growsStack{Before: 1, Grow: 1000, After: "intact", Deep: &growsStack{Grow: 2000, After: "too"}}
		got, err := jsonwire.Append(nil, &v, jsonwire.Options{})
		if err != nil {
			done <- err.Error()
			return
		}
		done <- string(got)
	}()
	want := `{"Before":1,"Grow":"eaten","After":"intact","Deep":{"Before":0,"Grow":"eaten","After":"too","Deep":null}}`
	if got := <-done; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// largeKey is a key for a map. The runtime may place smaller values without pointers in one allocation together with
// others. Then another value could keep the key in memory, see weak.Pointer.
type largeKey [64]byte

func (k *largeKey) MarshalText() ([]byte, error) { return k[:1], nil }

// Pooled working memory retains no value that it was used for.
func TestPoolsDoNotRetainMaps(t *testing.T) {
	encode := func() (value weak.Pointer[user], key weak.Pointer[largeKey]) {
		u, k := &users(1)[0], &largeKey{'k'}
		m := map[*largeKey]*user{k: u}
		if _, err := jsonwire.Append(nil, &m, jsonwire.Options{}); err != nil {
			t.Fatal(err)
		}
		return weak.Make(u), weak.Make(k)
	}
	value, key := encode()
	runtime.GC() // a pool keeps its content for one more collection
	if value.Value() != nil {
		t.Error("the pool retains the value")
	}
	if key.Value() != nil {
		t.Error("the pool retains the key")
	}
}
