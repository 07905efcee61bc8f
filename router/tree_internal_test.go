package router

import (
	"reflect"
	"testing"
)

// A lookup in a large router mostly waits for memory. The fields that it reads of a node, of its edges and of a leaf are in one
// cache line each.
func TestSizesFitCacheLines(t *testing.T) {
	if n := reflect.TypeFor[node]().Size(); n > 64 {
		t.Errorf("a node has %d bytes, want at most a cache line", n)
	}
	if n := reflect.TypeFor[edges]().Size(); n > 64 {
		t.Errorf("edges have %d bytes, want at most a cache line", n)
	}
	if n := reflect.TypeFor[leaf]().Size(); n > 128 {
		t.Errorf("a leaf has %d bytes, want at most 128: a larger one need not begin with a cache line", n)
	}
}

// A lookup that uses a replaced leaf must not read the methods of the new leaf.
func TestEndOfReplacedLeaf(t *testing.T) {
	before := &leaf{first: binding{methods: methodPost}}
	after := &leaf{first: binding{methods: methodGet | methodPost}}
	var n node
	n.setEnd(before)
	if !n.endAnswers(before, methodPost) || n.endAnswers(before, methodGet) {
		t.Error("endAnswers: got methods that are not those of the leaf")
	}
	n.setEnd(after)
	if !n.endAnswers(after, methodGet) || n.endAnswers(before, methodGet) {
		t.Error("endAnswers: got methods that are not those of the new leaf")
	}
}
