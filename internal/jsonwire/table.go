package jsonwire

import (
	"reflect"
	"sync"
	"sync/atomic"
)

// A planTable maps types to plans by open addressing with linear probing. It is at most half full, so that most lookups need one hash
// and one comparison. Readers do not lock. A writer holds the mutex compiling and replaces the whole table. Entries are never removed,
// because a program has a finite number of types.
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

	// compiling serializes compilation and the writes to both tables.
	compiling sync.Mutex
)

// get returns the plan for key, or nil if the table has no such plan.
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

// put publishes a complete plan, unless the table already has a plan for key. The caller must hold the mutex compiling.
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

// planOf returns the plan for the dynamic type of v. v must not be nil.
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

// registerPointer publishes the plan of type T for Append[T]. pointer is (*T)(nil). An interface type has no plan, because Append,
// like json.Marshal, uses the dynamic type of its value.
func registerPointer(pointer any) {
	t := reflect.TypeOf(pointer).Elem()
	if t.Kind() == reflect.Interface {
		return
	}
	compiling.Lock()
	defer compiling.Unlock()
	plansByPointer.put(typeOf(pointer), compile(t, false))
}
