package stdhttp

import (
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// A cutWriter records whether its stream was reset.
type cutWriter struct {
	http.ResponseWriter
	cut atomic.Bool
}

func (w *cutWriter) SetWriteDeadline(time.Time) error { w.cut.Store(true); return nil }

// The rate of a stream is computed from the data that its client accepted in half of a WriteTimeout, even if the check runs
// late: while the process is stopped, no client can read.
func TestStreamRateWithLateTimer(t *testing.T) {
	for _, timeout := range []time.Duration{time.Minute, time.Minute + 1} {
		synctest.Test(t, func(t *testing.T) {
			server := &exchange.Server{}
			server.WriteTimeout, server.MinWriteRate = timeout, 256
			w := &cutWriter{}
			s := &timedStream{ResponseWriter: w, server: server, conn: new(connStreams)}
			s.begin()
			s.mu.Lock()
			s.since = s.since.Add(-3 * timeout) // the timer is late
			s.mu.Unlock()
			began := time.Now()
			for range 500 {
				time.Sleep(timeout / 100)
				s.conn.sent.Add(2 * 256 * int64(timeout/time.Second) / 100)
			}
			synctest.Wait()
			if w.cut.Load() {
				t.Fatal("the stream was reset, although the client read fast enough")
			}
			for !w.cut.Load() && time.Since(began) < time.Hour {
				time.Sleep(timeout / 2)
				synctest.Wait()
			}
			if !w.cut.Load() {
				t.Error("the stream was not reset, although the client read nothing")
			}
			s.end()
		})
	}
}
