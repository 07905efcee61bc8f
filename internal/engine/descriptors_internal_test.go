//go:build linux

package engine

import "testing"

func TestTableIsEnlargedAhead(t *testing.T) {
	var t1 table
	t1.size.Store(firstTable)
	for _, step := range []struct {
		fd   int32
		size int64
	}{{0, firstTable}, {firstTable*3/4 - 1, firstTable}, {firstTable * 3 / 4, 2 * firstTable}, {firstTable, 2 * firstTable}} {
		t1.taken(step.fd)
		if got := t1.size.Load(); got != step.size {
			t.Errorf("after descriptor %d the table has room for %d, want %d", step.fd, got, step.size)
		}
	}
}

func TestTableIsLeftToTheSystem(t *testing.T) {
	var left table // no engine has begun to enlarge it
	left.taken(1 << 20)
	if size := left.size.Load(); size != 0 {
		t.Errorf("it was enlarged to %d", size)
	}
}
