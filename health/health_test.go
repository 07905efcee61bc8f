package health_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/health"
)

// service returns an app with health checks at /live and /ready, and its log.
func service(checks ...health.Check) (*dunlin.App, *bytes.Buffer) {
	var logs bytes.Buffer
	app := dunlin.New(dunlin.Config{Logger: slog.New(slog.NewTextHandler(&logs, nil))})
	c := health.New(app)
	for _, check := range checks {
		c.AddCheck(check)
	}
	app.Get("/live", c.Live()).Critical()
	app.Get("/ready", c.Ready()).Critical()
	return app, &logs
}

// states returns the status code of an answer, and the states of the checks in its order.
func states(t *testing.T, app *dunlin.App, path string) (status int, list string) {
	t.Helper()
	var report health.Report
	status = dunlintest.JSON(t, app, "GET", path, nil, &report)
	list = report.Status
	for _, c := range report.Checks {
		list += " " + c.Name + ":" + c.Status
		if c.Error != "" {
			t.Errorf("%s: got the error %q in the answer", path, c.Error)
		}
	}
	return status, list
}

func want(t *testing.T, app *dunlin.App, path string, status int, list string) {
	t.Helper()
	if s, l := states(t, app, path); s != status || l != list {
		t.Errorf("%s: got %d %q, want %d %q", path, s, l, status, list)
	}
}

func TestLivenessAndReadiness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down, stuck error
		app, logs := service(
			health.Check{Name: "database", Run: func(context.Context) error { return down }},
			health.Check{Name: "worker", Run: func(context.Context) error { return stuck }, Live: true},
		)
		want(t, app, "/ready", 200, "ok database:ok worker:ok")
		want(t, app, "/live", 200, "ok worker:ok")
		down = errors.New("no route to 10.0.0.7")
		want(t, app, "/ready", 200, "ok database:ok worker:ok") // from the cache
		time.Sleep(health.DefaultCache)
		want(t, app, "/ready", 503, "failing database:failing worker:ok")
		want(t, app, "/live", 200, "ok worker:ok")
		time.Sleep(health.DefaultCache)
		want(t, app, "/ready", 503, "failing database:failing worker:ok")
		if n := strings.Count(logs.String(), "health check fails"); n != 1 || !strings.Contains(logs.String(), "no route to 10.0.0.7") {
			t.Errorf("got %d log lines, want 1 for the change:\n%s", n, logs)
		}
		if s := app.Stats().String(); !strings.Contains(s, "no route to 10.0.0.7") {
			t.Error("Stats: got no error of the check")
		}
		down, stuck = nil, errors.New("stuck")
		time.Sleep(health.DefaultCache)
		want(t, app, "/live", 503, "failing worker:failing")
		want(t, app, "/ready", 503, "failing database:ok worker:failing")
		if !strings.Contains(logs.String(), "health check succeeds again") {
			t.Errorf("got a log without the recovery:\n%s", logs)
		}
		if err := app.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		want(t, app, "/ready", 503, "draining")
		want(t, app, "/live", 503, "failing worker:failing")
	})
}

// goroutines returns the number of calls of package health on the stacks of all goroutines. The number of other goroutines
// varies.
func goroutines() int {
	stacks := make([]byte, 1<<20)
	return bytes.Count(stacks[:runtime.Stack(stacks, true)], []byte("dunlin/health.("))
}

// A check that hangs fails after its timeout, and holds only one goroutine, even if it is requested repeatedly.
func TestCheckThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, hang := 0, make(chan bool)
		app, logs := service(health.Check{Name: "slow", Timeout: 500 * time.Millisecond, Run: func(context.Context) error {
			if calls++; calls == 1 {
				<-hang // ignores its context
			}
			return nil
		}})
		began := time.Now()
		want(t, app, "/ready", 503, "failing slow:timeout")
		if took := time.Since(began); took != 500*time.Millisecond {
			t.Errorf("first answer took %v", took)
		}
		before := goroutines()
		if before == 0 {
			t.Fatal("no goroutine runs the hanging check")
		}
		for range 20 {
			time.Sleep(time.Minute)
			began := time.Now()
			want(t, app, "/ready", 503, "failing slow:timeout")
			if took := time.Since(began); took != 0 {
				t.Errorf("answer during the hanging check took %v", took)
			}
		}
		synctest.Wait()
		if now := goroutines(); calls != 1 || now > before {
			t.Errorf("got %d calls and %d goroutines, %d goroutines before", calls, now, before)
		}
		if n := strings.Count(logs.String(), "health check fails"); n != 1 {
			t.Errorf("got %d log lines", n)
		}
		close(hang)
		synctest.Wait()
		want(t, app, "/ready", 200, "ok slow:ok")
		if calls != 2 {
			t.Errorf("got %d calls, want 2", calls)
		}
	})
}

// Requests at the same time share one call, and all checks run at the same time.
func TestChecksRunConcurrently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := make(chan string, 100)
		slow := func(name string) health.Check {
			return health.Check{Name: name, Timeout: time.Minute, Run: func(context.Context) error {
				calls <- name
				time.Sleep(time.Second)
				return nil
			}}
		}
		app, _ := service(slow("a"), slow("b"))
		began := time.Now()
		done := make(chan bool)
		for range 10 {
			go func() {
				want(t, app, "/ready", 200, "ok a:ok b:ok")
				done <- true
			}()
		}
		for range 10 {
			<-done
		}
		if took := time.Since(began); took != time.Second || len(calls) != 2 {
			t.Errorf("got %d calls in %v", len(calls), took)
		}
	})
}

func TestChecksThatDoNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app, logs := service(
			health.Check{Name: "panics", Cache: -1, Run: func(context.Context) error { panic("broke") }},
			health.Check{Name: "exits", Cache: -1, Run: func(context.Context) error { runtime.Goexit(); return nil }},
			health.Check{Name: "obeys", Cache: -1, Run: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
		)
		want(t, app, "/ready", 503, "failing panics:failing exits:failing obeys:timeout")
		synctest.Wait()
		if !strings.Contains(logs.String(), "panic: broke") {
			t.Error(logs)
		}
	})
}

// missing is an error type whose methods dereference the receiver.
type missing struct{ cause error }

func (m *missing) Error() string { return m.cause.Error() }
func (m *missing) Unwrap() error { return m.cause }

// A function that returns a nil pointer as its error is a common mistake.
func TestCheckWithErrorThatPanics(t *testing.T) {
	app, logs := service(health.Check{Name: "database", Run: func(context.Context) error {
		var err *missing
		return err
	}})
	want(t, app, "/ready", 503, "failing database:failing")
	if !strings.Contains(logs.String(), "nil pointer") || !strings.Contains(app.Stats().String(), "nil pointer") {
		t.Errorf("got a log without a reason:\n%s", logs)
	}
}

// A success after the timeout is a failure, so that the state does not alternate.
func TestCheckThatSucceedsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app, logs := service(health.Check{Name: "database", Cache: time.Hour, Run: func(context.Context) error {
			time.Sleep(2 * health.DefaultTimeout)
			return nil
		}})
		want(t, app, "/ready", 503, "failing database:timeout")
		time.Sleep(2 * health.DefaultTimeout)
		want(t, app, "/ready", 503, "failing database:timeout")
		if strings.Contains(logs.String(), "succeeds again") {
			t.Errorf("got a log with a success:\n%s", logs)
		}
	})
}

func TestAddCheckPanics(t *testing.T) {
	c := health.New(dunlin.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler)}))
	ok := func(context.Context) error { return nil }
	c.Add("a", ok)
	for text, add := range map[string]func(){
		`health: AddCheck: the name "a" is taken`:                     func() { c.Add("a", ok) },
		"health: AddCheck: the check has no name, or no function":     func() { c.Add("", ok) },
		"health: AddCheck: the check has no name, or no function\x00": func() { c.Add("b", nil) },
	} {
		func() {
			defer func() {
				if v := recover(); v != strings.TrimSuffix(text, "\x00") {
					t.Errorf("got panic %v, want %s", v, text)
				}
			}()
			add()
		}()
	}
}
