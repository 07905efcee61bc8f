package router

import (
	"reflect"
	"testing"
)

// A lookup in a large router mostly waits for memory: what it reads of a node and of a leaf lies in one
// cache line each.
func TestSizesFitCacheLines(t *testing.T) {
	if n := reflect.TypeFor[node]().Size(); n > 64 {
		t.Errorf("a node has %d bytes, more than a cache line", n)
	}
	if n := reflect.TypeFor[leaf]().Size(); n > 128 {
		t.Errorf("a leaf has %d bytes: beyond 128 it need not begin with a cache line", n)
	}
}
