package exchange_test

import (
	"fmt"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// A target with a large answer is remembered until it has a small one. Other targets of the route are not affected.
func TestTargets(t *testing.T) {
	of := func(path, query string) exchange.Target {
		return (&exchange.State{Path: path, Query: query}).Target()
	}
	var m exchange.Targets
	large := of("/report", "all=1")
	m.Note(large, false)
	if m.Large(large) {
		t.Error("known before it was noted")
	}
	m.Note(large, true)
	if !m.Large(large) || !m.Large(of("/report", "all=1")) {
		t.Error("not known")
	}
	others := 0
	for i := range 1000 {
		if m.Large(of("/report", fmt.Sprint("id=", i))) {
			others++
		}
	}
	if others > 1 || of("/a", "b") == of("/ab", "") {
		t.Errorf("%d others are taken for it", others)
	}
	if m.Note(large, false); m.Large(large) {
		t.Error("still known when its answer was small")
	}
}
