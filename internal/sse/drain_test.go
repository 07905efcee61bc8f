package sse_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunlinhttp/dunlin/internal/sse"
)

// A told is a stream that notes the time of its end.
type told struct{ at time.Time }

func (t *told) Draining() { t.at = time.Now() }

// A drain ends the streams one after another, over the time that it gets for their number.
func TestDrainSpreads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const streams = 1000
		var d sse.Drain
		begins := make(chan struct{})
		spread := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
		all := make([]told, streams)
		listeners := make([]sse.Listener, streams)
		for i := range all {
			listeners[i].Stream = &all[i]
			d.Add(&listeners[i], begins, spread)
		}
		for i := 0; i < streams; i += 10 { // these have ended before
			d.Remove(&listeners[i])
			d.Remove(&listeners[i])
		}
		begun := time.Now()
		close(begins)
		<-time.After(100 * time.Millisecond)
		synctest.Wait()
		late := told{}
		d.Add(&sse.Listener{Stream: &late}, begins, spread)
		if late.at != time.Now() {
			t.Error("a stream that opens during the drain is not told at once")
		}
		<-time.After(time.Hour)
		synctest.Wait()
		ended := map[time.Duration]int{}
		for i := range all {
			if i%10 == 0 {
				if !all[i].at.IsZero() {
					t.Errorf("stream %d was told after its end", i)
				}
				continue
			}
			ended[all[i].at.Sub(begun)/(100*time.Millisecond)]++
		}
		for i := range 9 {
			if n := ended[time.Duration(i)]; n != 100 {
				t.Errorf("%d streams ended in part %d of nine, want 100", n, i)
			}
		}
	})
}
