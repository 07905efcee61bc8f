package jsonwire

import (
	"reflect"
	"sync"
	"sync/atomic"
)

// A planTable maps types to plans by open addressing with linear probing. It is at most half full, so a lookup usually takes one hash
// and one comparison. Readers do not lock. A writer, which holds compiling, replaces the whole table. The number of types of a program
// is finite, so entries are never removed.
type planTable struct {
	slots atomic.Pointer[[]planSlot] // length: a power of two
}

type planSlot struct {
	key  typeID // zero if the slot is empty
	plan *plan
}

var (
	plansByType    planTable // plan of T by the typeID of T
	plansByPointer planTable // plan of T by the typeID of *T, without interface types

	// compiling serializes the compiler and the writers of both tables.
	compiling sync.Mutex
)

// get returns the plan for key, or nil if there is none yet.
func (t *planTable) get(key typeID) *plan {
	slots := t.slots.Load()
	if slots == nil {
		return nil
	}
	s := *slots
	for i := key.hash(); ; i++ {
		slot := &s[i&uintptr(len(s)-1)]
		if slot.key == key {
			return slot.plan
		}
		if slot.key == (typeID{}) {
			return nil
		}
	}
}

// put publishes a complete plan. The caller must hold compiling.
func (t *planTable) put(key typeID, p *plan) {
	if t.get(key) != nil {
		return
	}
	var old []planSlot
	if slots := t.slots.Load(); slots != nil {
		old = *slots
	}
	used := 1
	for i := range old {
		if old[i].key != (typeID{}) {
			used++
		}
	}
	size := max(len(old), 16)
	for size < 2*used {
		size *= 2
	}
	s := make([]planSlot, size)
	insert := func(slot planSlot) {
		i := slot.key.hash()
		for s[i&uintptr(size-1)].key != (typeID{}) {
			i++
		}
		s[i&uintptr(size-1)] = slot
	}
	for _, slot := range old {
		if slot.key != (typeID{}) {
			insert(slot)
		}
	}
	insert(planSlot{key, p})
	t.slots.Store(&s)
}

// planOf returns the plan for v's dynamic type. v must not be nil.
func planOf(v any) *plan {
	if p := plansByType.get(typeOf(v)); p != nil {
		return p
	}
	compiling.Lock()
	defer compiling.Unlock()
	p := compile(reflect.TypeOf(v), false)
	plansByType.put(typeOf(v), p)
	return p
}

// registerPointer publishes the plan of T for Append[T]; pointer is (*T)(nil). Interfaces have no plan: like json.Marshal,
// Append uses the dynamic type.
func registerPointer(pointer any) {
	t := reflect.TypeOf(pointer).Elem()
	if t.Kind() == reflect.Interface {
		return
	}
	compiling.Lock()
	defer compiling.Unlock()
	plansByPointer.put(typeOf(pointer), compile(t, false))
}
