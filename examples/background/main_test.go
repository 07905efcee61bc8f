package main

import (
	"runtime"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
)

func TestClean(t *testing.T) {
	c := &cache{entries: map[string]time.Time{}}
	c.put("old", time.Now().Add(-time.Hour))
	c.put("new", time.Now().Add(time.Hour))
	app := newApp(dunlin.Config{}, c, time.Millisecond)
	dunlintest.Serve(t, app) // starts the worker, and waits for it when the test ends
	for c.len() > 1 {
		runtime.Gosched()
	}
	if w := app.Stats().Workers; len(w) != 1 || w[0].Name != "clean" || w[0].Running != 1 {
		t.Errorf("workers: got %+v", w)
	}
}
