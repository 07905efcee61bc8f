package resilience_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunlinhttp/dunlin/resilience"
)

var errFailed = errors.New("failed")

// A trial that waits for its client's body blocks other calls no longer than OpenFor: the client may be slow on purpose.
func TestBreakerSlowTrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := resilience.NewBreaker(resilience.BreakerConfig{Failures: 1, OpenFor: time.Second})
		call := func(err error) error { return b.Do(t.Context(), func() error { return err }) }
		_ = call(errFailed)
		time.Sleep(time.Second)
		ended, end := make(chan error), make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { ended <- b.Do(ctx, func() error { <-end; return context.Canceled }) }()
		synctest.Wait()
		if err := call(nil); !errors.Is(err, resilience.ErrOpen) {
			t.Errorf("call during a trial: %v", err)
		}
		time.Sleep(time.Second)
		if err := call(nil); err != nil || b.Open() {
			t.Errorf("call during a long trial: got %v, open %v", err, b.Open())
		}
		cancel()
		close(end)
		if <-ended; b.Open() {
			t.Error("the cancelled trial opened the breaker")
		}
	})
}

func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var changes []bool
		b := resilience.NewBreaker(resilience.BreakerConfig{Failures: 3, OpenFor: time.Second, OnChange: func(open bool) { changes = append(changes, open) }})
		calls := 0
		call := func(err error) error {
			return b.Do(t.Context(), func() error { calls++; return err })
		}
		want := func(what string, err, wanted error, made int) {
			t.Helper()
			if !errors.Is(err, wanted) || calls != made {
				t.Errorf("%s: got %v after %d calls, want %v after %d", what, err, calls, wanted, made)
			}
		}
		want("failure 1", call(errFailed), errFailed, 1)
		want("failure 2", call(errFailed), errFailed, 2)
		want("a success resets the count", call(nil), nil, 3)
		for i := range 3 {
			want("failures in a row", call(errFailed), errFailed, 4+i)
		}
		want("open", call(nil), resilience.ErrOpen, 6)
		time.Sleep(time.Second)
		want("a trial that fails", call(errFailed), errFailed, 7)
		want("open again", call(nil), resilience.ErrOpen, 7)
		time.Sleep(time.Second)
		want("for twice as long", call(nil), resilience.ErrOpen, 7)
		time.Sleep(time.Second)
		ended, end := make(chan error), make(chan struct{})
		go func() { ended <- b.Do(t.Context(), func() error { <-end; return nil }) }()
		synctest.Wait()
		want("one trial at a time", call(nil), resilience.ErrOpen, 7)
		close(end)
		want("a trial that succeeds", <-ended, nil, 7)
		want("closed", call(nil), nil, 8)
		if fmt.Sprint(changes) != "[true false]" || b.Open() {
			t.Errorf("got changes %v, open %v", changes, b.Open())
		}
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		for range 10 {
			_ = b.Do(cancelled, func() error { return cancelled.Err() })
		}
		if b.Open() {
			t.Error("cancelled calls opened the breaker")
		}
		for range 3 {
			func() {
				defer func() { _ = recover() }()
				_ = b.Do(t.Context(), func() error { panic("asked for") })
			}()
		}
		if !b.Open() {
			t.Error("the breaker is closed after panics")
		}
	})
	defer func() {
		if recover() == nil {
			t.Error("NewBreaker with negative Failures: got no panic")
		}
	}()
	resilience.NewBreaker(resilience.BreakerConfig{Failures: -1})
}

func TestFlight(t *testing.T) {
	var flight resilience.Flight[string, int]
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := flight.Do(impatient, "key", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled caller: %v", err)
	}
	v, shared, err := flight.Do(t.Context(), "other", func(context.Context) (int, error) { return 8, nil })
	if v != 8 || shared || err != nil {
		t.Errorf("other key: got %d, %v, %v", v, shared, err)
	}
	for name, f := range map[string]func(context.Context) (int, error){
		"panic":  func(context.Context) (int, error) { panic("asked for") },
		"goexit": func(context.Context) (int, error) { runtime.Goexit(); return 0, nil },
		"error":  func(context.Context) (int, error) { return 0, errFailed },
	} {
		if _, _, err := flight.Do(t.Context(), name, f); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

// Concurrent callers share one call. It is cancelled when all callers have left.
func TestFlightTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var flight resilience.Flight[int, string]
		calls := 0
		f := func(ctx context.Context) (string, error) {
			calls++
			select {
			case <-time.After(time.Second):
				return fmt.Sprint(ctx.Value(flightKey{})), nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}
		var all sync.WaitGroup
		for range 1000 {
			all.Go(func() {
				v, shared, err := flight.Do(context.WithValue(t.Context(), flightKey{}, "of the first"), 1, f)
				if v != "of the first" || !shared || err != nil {
					t.Errorf("got %q, %v, %v", v, shared, err)
				}
			})
		}
		all.Wait()
		if calls != 1 {
			t.Errorf("got %d calls, want 1", calls)
		}
		ended := make(chan error, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, _, err := flight.Do(ctx, 2, func(ctx context.Context) (string, error) {
			<-ctx.Done()
			ended <- ctx.Err()
			return "", ctx.Err()
		})
		if !errors.Is(err, context.DeadlineExceeded) || <-ended != context.Canceled {
			t.Errorf("got %v", err)
		}
	})
}

type flightKey struct{}

func ExampleBreaker() {
	rates := resilience.NewBreaker(resilience.BreakerConfig{Failures: 2})
	client := &http.Client{Transport: rates.Transport(nil), Timeout: time.Second}
	for range 3 {
		resp, err := client.Get("http://127.0.0.1:1/rates") // refuses connections
		if errors.Is(err, resilience.ErrOpen) {
			fmt.Println("it was not tried")
		} else if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	}
	// Output: it was not tried
}

func ExampleFlight() {
	var users resilience.Flight[int, string]
	name, _, err := users.Do(context.Background(), 7, func(ctx context.Context) (string, error) {
		return "ada", nil // a database query
	})
	fmt.Println(name, err)
	// Output: ada <nil>
}
