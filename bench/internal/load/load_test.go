//go:build linux

package load_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/bench/internal/load"
)

func serve(t *testing.T, handler http.HandlerFunc) (addr string) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func TestOpenLoopAccountsForEveryRequest(t *testing.T) {
	var requests atomic.Int64
	addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch requests.Add(1) % 4 {
		case 0:
			http.Error(w, "busy", http.StatusServiceUnavailable)
		case 1:
			http.NotFound(w, r)
		case 2: // chunked, longer than the client's buffer
			w.Write(make([]byte, 100_000))
			w.Write(make([]byte, 100_000))
		case 3:
			w.Header().Set("Connection", "close")
			w.WriteHeader(http.StatusNoContent)
		}
	})
	got, err := load.OpenLoop{
		Addr: addr, Path: "/", Rate: 1000, Duration: 200 * time.Millisecond,
		Connections: 1, Patience: time.Minute, LeadIn: 16 * time.Millisecond, // 4 requests, which are not counted
	}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if requests.Load() != 204 {
		t.Errorf("got %d requests, want 204", requests.Load())
	}
	if got.Due != 200 || got.Answered.Count != 100 || got.Rejected.Count != 50 || got.Other != 50 || got.Unanswered != 0 {
		t.Errorf("got %+v, want 200 due: 100 answered, 50 rejected, 50 other", got)
	}
	if got.Answered.P50 <= 0 || got.Answered.P99 < got.Answered.P50 || got.Answered.P999 < got.Answered.P99 {
		t.Errorf("latencies out of order: got %+v", got.Answered)
	}
}

// The latencies of requests that are due while the server is stalled must include the stall.
func TestOpenLoopMeasuresFromTheDueMoment(t *testing.T) {
	const stall = 300 * time.Millisecond
	var once sync.Once
	addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		once.Do(func() { time.Sleep(stall) }) // the stall is measured
	})
	got, err := load.OpenLoop{
		Addr: addr, Path: "/", Rate: 500, Duration: 200 * time.Millisecond,
		Connections: 1, Patience: time.Minute,
	}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got.Answered.Count != 100 {
		t.Fatalf("got %+v, want 100 answered", got)
	}
	if least := stall - 200*time.Millisecond; got.Answered.P50 < least {
		t.Errorf("the median is %v; all requests fell due during the stall and waited at least %v", got.Answered.P50, least)
	}
}

func TestOpenLoopPatience(t *testing.T) {
	release := make(chan struct{})
	addr := serve(t, func(w http.ResponseWriter, r *http.Request) { <-release })
	defer close(release)
	got, err := load.OpenLoop{
		Addr: addr, Path: "/", Rate: 100, Duration: 100 * time.Millisecond,
		Connections: 2, Patience: 20 * time.Millisecond,
	}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got.Unanswered != 10 || got.Answered.Count != 0 {
		t.Errorf("got %+v, want 10 unanswered", got)
	}
	if got.All.Count != 10 || got.All.P50 < 20*time.Millisecond {
		t.Errorf("all requests: got %+v, want 10 that were waited for at least 20ms", got.All)
	}
	if got.Failed() != 10 || got.CPU <= 0 || got.Took <= 0 {
		t.Errorf("%d failed, %v of CPU in %v", got.Failed(), got.CPU, got.Took)
	}
}

func TestOpenLoopEndsWithItsContext(t *testing.T) {
	addr := serve(t, func(w http.ResponseWriter, r *http.Request) {})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := load.OpenLoop{
		Addr: addr, Path: "/", Rate: 1, Duration: time.Hour, Connections: 1, Patience: time.Second,
	}.Run(ctx)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want context.Canceled", err)
	}
	if _, err := (load.OpenLoop{Addr: addr}).Run(t.Context()); err == nil {
		t.Error("without a rate: got no error")
	}
}

func TestHoldIdle(t *testing.T) {
	var asked atomic.Int64
	addr := serve(t, func(w http.ResponseWriter, r *http.Request) { asked.Add(1) })
	held, err := load.Hold{Addr: addr, Path: "/", Connections: 20}.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if asked.Load() != 20 {
		t.Errorf("got %d requests, want one for each of 20 connections", asked.Load())
	}
	if cut, err := held.CutOff(); cut != 0 || err != nil {
		t.Errorf("got %d closed connections (error %v), want 0", cut, err)
	}
}

func TestHoldOverTLS(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked.Add(1) }))
	defer server.Close()
	for _, hold := range []load.Hold{{TLS: true}, {Hello: true}} {
		hold.Addr, hold.Path, hold.Connections = server.Listener.Addr().String(), "/", 5
		held, err := hold.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if cut, err := held.CutOff(); cut != 0 || err != nil {
			t.Errorf("got %d closed connections (error %v), want 0", cut, err)
		}
		held.Close()
	}
	if asked.Load() != 5 {
		t.Errorf("got %d requests, want one for each of 5 connections with a handshake", asked.Load())
	}
}

func TestHoldUnreadCountsClosedConnections(t *testing.T) {
	addr := serve(t, func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) })
	held, err := load.Hold{Addr: addr, Path: "/", Connections: 5, Unread: 50}.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		n, err := held.CutOff()
		if err != nil {
			t.Fatal(err)
		}
		if n == 5 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("got %d of 5 closed connections", n)
		}
	}
}

func TestHoldErrorNamesConnection(t *testing.T) {
	_, err := load.Hold{Addr: "127.0.0.1:1", Path: "/", Connections: 3}.Open(t.Context())
	if err == nil || !strings.Contains(err.Error(), "connection 1 of 3") {
		t.Errorf("got error %v, want the connection in it", err)
	}
}

func TestFirstAnswer(t *testing.T) {
	var asked atomic.Int64
	addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) < 3 {
			w.WriteHeader(http.StatusBadGateway)
		}
	})
	if err := load.FirstAnswer(t.Context(), addr, "/"); err != nil || asked.Load() != 3 {
		t.Errorf("got error %v after %d requests, want an answer to the third", err, asked.Load())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := load.FirstAnswer(ctx, "127.0.0.1:1", "/"); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want context.Canceled", err)
	}
}
