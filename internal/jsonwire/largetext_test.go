package jsonwire_test

import (
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/jsonwire"
)

// A marker calls the function that has its name.
type marker struct{}

// markers are the functions of markers. Guarded by markerLock.
var (
	markers    map[string]func()
	markerLock sync.Mutex
)

func (*marker) UnmarshalText(name []byte) error {
	markerLock.Lock()
	f := markers[string(name)]
	markerLock.Unlock()
	f()
	return nil
}

// The number of large texts that are decoded at the same time is limited to the number of processors. Small texts do not wait for them,
// and a large text waits only for a limited time.
func TestConcurrentLargeTextsAreLimited(t *testing.T) {
	var mu sync.Mutex
	active, most := 0, 0
	change := func(by int) {
		mu.Lock()
		active += by
		most = max(most, active)
		mu.Unlock()
		runtime.Gosched()
	}
	release := make(chan bool)
	var blocked sync.WaitGroup
	markerLock.Lock()
	markers = map[string]func(){
		"begin": func() { change(1) },
		"end":   func() { change(-1) },
		"none":  func() {},
		"block": func() { blocked.Done(); <-release },
	}
	markerLock.Unlock()
	d := jsonwire.DecoderFor(reflect.TypeFor[[]marker]())
	decode := func(text string) {
		var v []marker
		if err := d.Decode([]byte(text), &v, jsonwire.Limits{}); err != nil {
			t.Error(err)
		}
	}
	spaces := strings.Repeat(" ", 100<<10)
	var all sync.WaitGroup
	processors := runtime.GOMAXPROCS(0)
	for range 8 * processors {
		all.Go(func() { decode(`["begin",` + spaces + `"end"]`) })
	}
	all.Wait()
	if most > processors {
		t.Errorf("got %d texts decoded at once, want at most %d", most, processors)
	}
	blocked.Add(processors)
	for range processors {
		all.Go(func() { decode(`["block"` + spaces + `]`) })
	}
	blocked.Wait()
	decode(`["none"]`)
	decode(`["none"` + spaces + `]`)
	close(release)
	all.Wait()
}
