package lifecycle_test

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/suite"
)

// An app that was shut down cannot serve again, and to try leaves nothing behind.
func TestServeAfterShutdown(t *testing.T) {
	suite.OnBothEngines(t, func(t *testing.T, engine dunlin.Engine) {
		try := func() {
			app, _ := suite.NewApp(dunlin.Config{Engine: engine})
			if err := app.Shutdown(t.Context()); err != nil {
				t.Errorf("Shutdown: %v", err)
			}
			for range 2 {
				if err := app.Serve(suite.Listen(t)); err == nil || !strings.HasSuffix(err.Error(), "the app was shut down") {
					t.Errorf("Serve after Shutdown: %v", err)
				}
			}
		}
		try() // what a process has once
		goroutines, files := runtime.NumGoroutine(), openFiles(t)
		for range 20 {
			try()
		}
		suite.Soon(t, "as many goroutines as before", func() bool { return runtime.NumGoroutine() <= goroutines })
		if now := openFiles(t); now > files {
			t.Errorf("%d open files, %d before", now, files)
		}
	})
}

// openFiles counts the descriptors of the process, where the system tells them.
func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return len(entries)
}
