package store

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"strconv"
	"testing"
)

// Each shard has its own cache lines, so processors do not contend for one line.
func TestShardsDoNotShareCacheLines(t *testing.T) {
	if size := reflect.TypeFor[shard]().Size(); strconv.IntSize == 64 && size != 64 {
		t.Errorf("got a shard of %d bytes", size)
	}
}

// Each number takes at most numberCost bytes, for any count of numbers.
func TestNumberMemory(t *testing.T) {
	var table numbers
	for n := 1; n <= 200_000; n++ {
		table.add(numberSlot{numberKey{rand.Uint64(), rand.Uint64()}, 1, 1})
		if each := 32 * len(table.slots) / n; n >= 64 && each > numberCost {
			t.Fatalf("%d numbers: got %d bytes per number, want at most %d", n, each, numberCost)
		}
	}
}

// check compares the table with a map.
func (t *numbers) check(test *testing.T, want map[numberKey]numberSlot) {
	test.Helper()
	if t.used != len(want) || t.used*usedDen > len(t.slots)*usedNum {
		test.Fatalf("got %d of %d slots in use, want %d", t.used, len(t.slots), len(want))
	}
	got := map[numberKey]numberSlot{}
	for _, s := range t.slots {
		if s.expires != 0 {
			got[s.key] = s
		}
	}
	if !maps.Equal(got, want) {
		test.Fatalf("got %v, want %v", got, want)
	}
	for key := range want {
		if at, known := t.find(key); !known || t.slots[at].key != key {
			test.Fatalf("key %v: not found", key)
		}
	}
}

// Each byte is a step: an operation, and one of a few keys with few home slots.
func FuzzNumbers(f *testing.F) {
	seed := make([]byte, 400)
	for i := range seed {
		seed[i] = byte(i * 7)
	}
	f.Add(seed)
	f.Add([]byte("\x00\x04\x08\x0c\x10\x14\x18\x1c\x20\x01\x05\x02\x03\x83"))
	f.Fuzz(func(t *testing.T, steps []byte) {
		var table numbers
		want := map[numberKey]numberSlot{}
		now := int64(1)
		for i, step := range steps {
			which := uint64(step >> 2)
			key := numberKey{which % 5 * (1 << 62), which} // at four home slots, the last one at the end
			at, known := table.find(key)
			if _, there := want[key]; there != known {
				t.Fatalf("step %d: key %v: got present %v", i, key, known)
			}
			switch step & 3 {
			case 0, 1:
				s := numberSlot{key, int64(i), now + int64(step%16)}
				if want[key] = s; known {
					table.slots[at] = s
				} else {
					table.add(s)
				}
			case 2:
				if known {
					table.remove(at)
					delete(want, key)
				}
			case 3:
				now += int64(step >> 5)
				end := now
				expired := func(expires int64) bool { return expires <= end }
				n := 0
				for key, s := range want {
					if expired(s.expires) {
						delete(want, key)
						n++
					}
				}
				removed := 0
				if step&4 == 0 {
					removed = table.drop(expired)
				} else {
					for range 2 { // entries that have moved from the end to the beginning are visited in the next round
						removed += table.sweep(2*len(table.slots), now)
					}
				}
				if removed != n {
					t.Fatalf("step %d: got %d expired numbers, want %d", i, removed, n)
				}
			}
			table.check(t, want)
		}
		if len(steps) >= 8 && table.used > 0 {
			table.drop(func(int64) bool { return true })
			table.check(t, nil)
		}
	})
}
