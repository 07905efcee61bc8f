package jsonwire_test

import (
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/jsonwire"
)

// TestValuesOnTheStack encodes values that only a stack refers to, with continuous garbage collections.
func TestValuesOnTheStack(t *testing.T) {
	encode := func(n int) {
		each := func(yield func(string) bool) {
			for yield("id" + strconv.Itoa(n)) {
			}
		}
		want, buf, left := strconv.Quote("id"+strconv.Itoa(n)), []byte(nil), 9000
		for v := range each {
			buf, _ = jsonwire.Append(buf[:0], &v, jsonwire.Options{})
			if string(buf) != want {
				t.Errorf("got %s, want %s", buf, want)
				return
			}
			if left--; left == 0 {
				return
			}
		}
	}
	var running sync.WaitGroup
	var over atomic.Bool
	for n := range 8 {
		running.Go(func() {
			for i := range 30 {
				encode(1000*n + i)
			}
		})
	}
	go func() { running.Wait(); over.Store(true) }()
	for !over.Load() {
		runtime.GC()
	}
}
