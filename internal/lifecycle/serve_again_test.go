package lifecycle_test

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/suite"
)

// An app that was shut down cannot serve again, and the attempt leaks nothing.
func TestServeAfterShutdown(t *testing.T) {
	suite.OnBothEngines(t, func(t *testing.T, engine dunlin.Engine) {
		leavesNothing(t, func() {
			app, _ := suite.NewApp(dunlin.Config{Engine: engine})
			if err := app.Shutdown(t.Context()); err != nil {
				t.Errorf("Shutdown: %v", err)
			}
			for range 2 {
				if err := app.Serve(suite.Listen(t)); err == nil || !strings.HasSuffix(err.Error(), "the app was shut down") {
					t.Errorf("Serve after Shutdown: %v", err)
				}
			}
		})
	})
}

// A listener that cannot be served leaks nothing either, with both engines.
func TestServeFails(t *testing.T) {
	for _, engine := range []dunlin.Engine{dunlin.EngineAuto, dunlin.EngineLoop, dunlin.EngineStd} {
		t.Run(engine.String(), func(t *testing.T) {
			leavesNothing(t, func() {
				app, _ := suite.NewApp(dunlin.Config{Engine: engine})
				closed := suite.Listen(t)
				_ = closed.Close()
				if err := app.Serve(closed); err == nil {
					t.Error("Serve of a closed listener succeeds")
				}
				if err := app.Shutdown(t.Context()); err != nil {
					t.Errorf("Shutdown: %v", err)
				}
			})
		})
	}
}

// leavesNothing calls try many times and checks that no goroutine and no descriptor leaks.
func leavesNothing(t *testing.T, try func()) {
	t.Helper()
	try() // initialise process-wide state
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	for range 20 {
		try()
	}
	suite.Soon(t, "as many goroutines as before", func() bool { return runtime.NumGoroutine() <= goroutines })
	suite.Soon(t, "as many open files as before", func() bool { return openFiles(t) <= files })
}

// openFiles counts the descriptors of the process, where the system reports them.
func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return len(entries)
}
