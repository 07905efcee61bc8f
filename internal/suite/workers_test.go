package suite_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	. "github.com/dunlinhttp/dunlin/internal/suite"
	"github.com/dunlinhttp/dunlin/stats"
)

// worker returns the statistics of the workers with a name.
func worker(t *testing.T, app *dunlin.App, name string) stats.Worker {
	t.Helper()
	for _, w := range app.Stats().Workers {
		if w.Name == name {
			return w
		}
	}
	t.Fatalf("no worker %q in %+v", name, app.Stats().Workers)
	return stats.Worker{}
}

// A background worker runs from the start of the server until the drain, which waits for it.
func TestWorkersDrainWithTheApp(t *testing.T) {
	OnBothEngines(t, func(t *testing.T, engine dunlin.Engine) {
		begun, told, finish := make(chan bool, 3), make(chan bool, 1), make(chan bool)
		app, logs := NewApp(dunlin.Config{Engine: engine, Addr: "127.0.0.1:0", Process: dunlin.ProcessConfig{DisableRestart: true}})
		app.Go("queue", func(ctx context.Context) error {
			begun <- true
			<-ctx.Done()
			told <- true
			<-finish
			return ctx.Err()
		})
		if w := worker(t, app, "queue"); w != (stats.Worker{Name: "queue"}) || len(begun) > 0 {
			t.Errorf("before Run: got %+v", w)
		}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- app.Run(ctx) }()
		Await(t, "the worker", begun)
		app.Go("queue", func(context.Context) error { begun <- true; return nil }) // starts at once
		Await(t, "the second worker", begun)
		cancel()
		Await(t, "the end of the worker's context", told)
		select {
		case err := <-ended:
			t.Errorf("Run returned %v before the worker had ended", err)
		default:
		}
		close(finish)
		if err := Await(t, "the end of Run", ended); err != nil {
			t.Error(err)
		}
		if w := worker(t, app, "queue"); w != (stats.Worker{Name: "queue", Ended: 2}) {
			t.Errorf("at the end: got %+v", w)
		}
		WantLacks(t, "the log", logs.String(), "background worker failed")
		app.Go("late", func(context.Context) error { begun <- true; return nil })
		if w := app.Stats().Workers; len(w) != 1 || len(begun) > 0 {
			t.Errorf("a worker began after the end: got %+v", w)
		}
	})
}

// Panics and errors of workers are logged and counted. They do not affect the app.
func TestWorkersFail(t *testing.T) {
	ended := make(chan bool, 3)
	app, logs := NewApp(dunlin.Config{})
	app.Go("panics", func(context.Context) error { defer func() { ended <- true }(); panic("worker broke") })
	app.Go("panics", func(context.Context) error { defer func() { ended <- true }(); return nil })
	app.Go("fails", func(context.Context) error { defer func() { ended <- true }(); return io.ErrUnexpectedEOF })
	served := make(chan error, 1)
	go func() { served <- app.Serve(Listen(t)) }()
	for range 3 {
		Await(t, "the end of a worker", ended)
	}
	if err := app.Shutdown(t.Context()); err != nil { // waits for the counts, too
		t.Error(err)
	}
	if err := Await(t, "the end of Serve", served); err != nil {
		t.Error(err)
	}
	want := []stats.Worker{{Name: "panics", Ended: 2, Panics: 1}, {Name: "fails", Ended: 1, Errors: 1}}
	if got := app.Stats().Workers; len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %+v, want %+v", got, want)
	}
	WantLogged(t, logs, "panic in a background worker", "worker broke", "workers_test.go", "background worker failed", "unexpected EOF", "worker=fails")
	for name, f := range map[string]func(context.Context) error{"": func(context.Context) error { return nil }, "name": nil} {
		WantContains(t, "the panic", PanicText(func() { app.Go(name, f) }), "dunlin: Go: the worker has no name, or no function", "workers_test.go:")
	}
}

// brokenError is an error whose text panics, like that of many nil pointers.
type brokenError struct{}

func (brokenError) Error() string { panic("broken text") }

// The text of a worker's error may panic, too.
func TestWorkerWithErrorThatPanics(t *testing.T) {
	ended := make(chan bool, 1)
	app, logs := NewApp(dunlin.Config{})
	app.Go("fails", func(context.Context) error { defer func() { ended <- true }(); return brokenError{} })
	served := make(chan error, 1)
	go func() { served <- app.Serve(Listen(t)) }()
	Await(t, "the end of the worker", ended)
	if err := app.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := Await(t, "the end of Serve", served); err != nil {
		t.Error(err)
	}
	if w := worker(t, app, "fails"); w != (stats.Worker{Name: "fails", Ended: 1, Errors: 1}) {
		t.Errorf("got %+v", w)
	}
	WantLogged(t, logs, "background worker failed", "worker=fails", "broken text")
}

// A worker that does not end within DrainTimeout is named in the error.
func TestWorkerOutlivesDrainTimeout(t *testing.T) {
	app, _ := NewApp(dunlin.Config{Process: dunlin.ProcessConfig{DrainTimeout: time.Nanosecond, DisableRestart: true}, Addr: "127.0.0.1:0"})
	stay := make(chan bool)
	t.Cleanup(func() { close(stay) })
	begun := make(chan bool)
	app.Go("stays", func(context.Context) error { close(begun); <-stay; return nil })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx) }()
	Await(t, "the worker", begun)
	cancel()
	err := Await(t, "the end of Run", ended)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "background workers still running: stays") {
		t.Errorf("error %v", err)
	}
}
