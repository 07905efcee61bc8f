package jsonwire

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A keyForm is a way to convert a map key to the name of a member.
type keyForm uint8

const (
	keyUnsupported keyForm = iota
	keyString
	keyText // MarshalText
	keyInt
	keyUint
)

// keyFormOf returns the form of keys of type t. As in encoding/json, MarshalText is not called for strings, but is called for
// integers.
func keyFormOf(t reflect.Type) keyForm {
	switch {
	case t.Kind() == reflect.String:
		return keyString
	case t.Implements(textMarshalerType):
		return keyText
	}
	switch op := scalarOp(t); {
	case opInt8 <= op && op <= opInt64:
		return keyInt
	case opUint8 <= op && op <= opUint64:
		return keyUint
	}
	return keyUnsupported
}

// mapKeys is the part of a map's plan that is used to sort the map's keys.
type mapKeys struct {
	typ  reflect.Type // type of the map
	form keyForm
	pool sync.Pool // pool of *mapScratch
}

// maxPooledEntries is the maximum number of entries in a pooled mapScratch, so that the pool does not retain the memory of a large
// map.
const maxPooledEntries = 1024

// maxPooledBytes is the maximum size of the values in a pooled mapScratch, in bytes.
const maxPooledBytes = 64 << 10

// A mapScratch is the working memory for one map: sorted copies of the map's entries, and variables through which reflect reads
// the map.
type mapScratch struct {
	word    memory        // address of a variable of the map type
	source  reflect.Value // this variable; the method members stores the map in it
	iter    reflect.MapIter
	key     reflect.Value // variable for the current key
	keyAt   memory        // address of this variable
	entries []mapEntry
	values  reflect.Value // slice of the map's element type, indexed by mapEntry.index
}

type mapEntry struct {
	key   string
	index int
}

func (k *mapKeys) scratch() *mapScratch {
	if s, ok := k.pool.Get().(*mapScratch); ok {
		return s
	}
	word, key := reflect.New(k.typ), reflect.New(k.typ.Key())
	return &mapScratch{
		word: memoryOf(word), source: word.Elem(),
		key: key.Elem(), keyAt: memoryOf(key),
		values: reflect.New(reflect.SliceOf(k.typ.Elem())).Elem(),
	}
}

// release removes all references to the map from s and returns s to the pool. It does not return an s that exceeds
// maxPooledEntries or maxPooledBytes.
func (k *mapKeys) release(s *mapScratch) {
	n := s.values.Len()
	if n > maxPooledEntries || n*int(k.typ.Elem().Size()) > maxPooledBytes {
		return
	}
	s.source.SetZero()
	s.key.SetZero()
	s.iter.Reset(reflect.Value{})
	clear(s.entries)
	s.values.Clear()
	k.pool.Put(s)
}

// mapping appends a map. Its entries are sorted by name.
func (e *encoder) mapping(dst []byte, p *plan, m memory) ([]byte, *Error) {
	if m.isNil() {
		return e.none(dst, "{}"), nil
	}
	v := visit{p, m.deref(), 0}
	if err := e.enter(v); err != nil {
		return dst, err
	}
	// After a panic in a user's method, s is not returned to the pool.
	s := p.keys.scratch()
	dst, err := e.members(dst, p, s, m)
	p.keys.release(s)
	e.leave(v)
	return dst, err
}

func (e *encoder) members(dst []byte, p *plan, s *mapScratch, m memory) ([]byte, *Error) {
	storeWord(s.word, m)
	if err := s.collect(p.keys.form); err != nil {
		return dst, &Error{Err: fmt.Errorf("json: encoding error for type %q: %w", p.typ, err)}
	}
	dst = append(dst, '{')
	for i := range s.entries {
		if i > 0 {
			dst = append(dst, ',')
		}
		entry := &s.entries[i]
		dst = append(appendString(dst, entry.key, e.esc), ':')
		var err *Error
		if dst, err = e.value(dst, p.elem, s.valueAt(entry.index, p)); err != nil {
			return dst, err.within(entry.key)
		}
	}
	return append(dst, '}'), nil
}

// valueAt returns the address of the copy of the value with the given index.
func (s *mapScratch) valueAt(index int, p *plan) memory {
	return memoryOf(s.values).at(uintptr(index) * p.typ.Elem().Size())
}

// collect copies the entries and sorts them.
func (s *mapScratch) collect(form keyForm) error {
	n := s.source.Len()
	if s.values.Cap() < n {
		s.values.Grow(n)
	}
	s.values.SetLen(n)
	s.entries = slices.Grow(s.entries[:0], n)
	s.iter.Reset(s.source)
	// The number of entries is checked in case another goroutine changes the map. Such a change is a data race, but it must not
	// corrupt memory.
	for i := 0; i < n && s.iter.Next(); i++ {
		s.key.SetIterKey(&s.iter)
		key, err := s.keyText(form)
		if err != nil {
			return err
		}
		s.values.Index(i).SetIterValue(&s.iter)
		s.entries = append(s.entries, mapEntry{key, i})
	}
	slices.SortFunc(s.entries, func(a, b mapEntry) int { return strings.Compare(a.key, b.key) })
	return nil
}

// keyText returns the name of the member for the key s.key.
func (s *mapScratch) keyText(form keyForm) (string, error) {
	switch form {
	case keyString:
		return load[string](s.keyAt), nil
	case keyInt:
		return strconv.FormatInt(s.key.Int(), 10), nil
	case keyUint:
		return strconv.FormatUint(s.key.Uint(), 10), nil
	}
	if s.key.Kind() == reflect.Pointer && s.key.IsNil() {
		return "", nil
	}
	m, ok := s.key.Interface().(encoding.TextMarshaler)
	if !ok {
		return "", errors.New("nil interface as a map key")
	}
	text, err := m.MarshalText()
	if err != nil {
		return "", &textError{&json.MarshalerError{Type: s.key.Type(), Err: err}}
	}
	return string(text), nil
}
