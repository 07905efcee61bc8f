//go:build unix

package lifecycle_test

import (
	"context"
	"math"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// If all settings of the process are disabled, the app changes none of them.
func TestProcessSettingsAreNotChanged(t *testing.T) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP) // handler of the program
	defer signal.Stop(hangups)
	t.Setenv("GOGC", "")
	old := debug.SetGCPercent(100)
	defer debug.SetGCPercent(old)
	serving := make(chan struct{})
	app := dunlin.New(dunlin.Config{
		Addr:   "127.0.0.1:0",
		Limits: dunlin.Limits{Memory: 64 << 20},
		Process: dunlin.ProcessConfig{
			DisableGCPacing: true,
			DisableRestart:  true,
		},
		Ready: func(net.Addr, dunlin.Engine) { close(serving) },
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx) }()
	<-serving
	if got := debug.SetGCPercent(100); got != 100 {
		t.Errorf("GOGC is %d", got)
	}
	if got := debug.SetMemoryLimit(-1); got != math.MaxInt64 {
		t.Errorf("the memory limit is %d", got)
	}
	if s := app.Stats().Memory; s.GOGC != 0 || s.HeapGoal != 0 || s.Budget == 0 || s.Budget > 16<<20 {
		t.Errorf("got %+v, want a budget and no pacing", s)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	<-hangups
	select {
	case err := <-ended:
		t.Fatalf("Run returned %v", err)
	default:
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Without a limit, the settings of the runtime stay unchanged while only net/http's server is used. The heap grows further once
// the loop engine serves.
func TestPaceByLimitAndEngine(t *testing.T) {
	for _, test := range []struct {
		name    string
		limit   dunlin.ByteSize
		engines []dunlin.Engine // engines of the app's listeners, in order
	}{
		{"net/http only", 0, []dunlin.Engine{dunlin.EngineStd}},
		{"net/http within a limit", 64 << 20, []dunlin.Engine{dunlin.EngineStd}},
		{"the loop", 0, []dunlin.Engine{dunlin.EngineAuto}},
		{"net/http by TLS, then the loop", 0, []dunlin.Engine{dunlin.EngineStd, dunlin.EngineAuto}},
		{"the loop, then net/http", 0, []dunlin.Engine{dunlin.EngineAuto, dunlin.EngineStd}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("GOGC", "")
			old := debug.SetGCPercent(100)
			defer debug.SetGCPercent(old)
			before := debug.SetMemoryLimit(-1)
			ready := make(chan dunlin.Engine)
			app := dunlin.New(dunlin.Config{
				Engine: dunlin.EngineAuto,
				Limits: dunlin.Limits{Memory: test.limit},
				Ready:  func(_ net.Addr, e dunlin.Engine) { ready <- e },
			})
			served := make(chan error, len(test.engines))
			loop := false
			for _, want := range test.engines {
				ln, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				if want == dunlin.EngineStd {
					ln = otherListener{ln} // not supported by the loop engine
				}
				go func() { served <- app.Serve(ln) }()
				by := <-ready
				s := app.Stats().Memory
				loop = loop || by == dunlin.EngineLoop
				switch limited := debug.SetMemoryLimit(-1) != before; {
				case s.Limit > 0:
					if s.HeapGoal == 0 || s.GOGC == 0 || !limited {
						t.Errorf("%v serves within a limit: %+v, of the runtime's: got %v", by, s, limited)
					}
				case loop:
					if s.HeapGoal < 20<<20 || s.GOGC <= 175 || !limited {
						t.Errorf("%v serves beside a loop: %+v, a limit of the runtime's: got %v", by, s, limited)
					}
				default:
					if s.HeapGoal != 0 || s.GOGC != 0 || limited {
						t.Errorf("%v serves alone: %+v, a limit of the runtime's: got %v", by, s, limited)
					}
				}
			}
			if err := app.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
			for range test.engines {
				if err := <-served; err != nil {
					t.Error(err)
				}
			}
			if got := debug.SetGCPercent(100); got != 100 {
				t.Errorf("GOGC is %d after Shutdown", got)
			}
			if got := debug.SetMemoryLimit(-1); got != before {
				t.Errorf("the memory limit is %d after Shutdown", got)
			}
		})
	}
}

// otherListener is a listener of a type that the loop engine does not know.
type otherListener struct{ net.Listener }
