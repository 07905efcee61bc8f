//go:build unix

package dunlin_test

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

// With everything switched off that concerns the whole process, it is left alone.
func TestProcessIsLeftAlone(t *testing.T) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP) // the program's own
	defer signal.Stop(hangups)
	t.Setenv("GOGC", "")
	old := debug.SetGCPercent(100)
	defer debug.SetGCPercent(old)
	serving := make(chan struct{})
	app := dunlin.New(dunlin.Config{
		Addr:                    "127.0.0.1:0",
		MemoryLimit:             64 << 20,
		DisableGCPacing:         true,
		DisableProgramDrop:      true,
		DisableDescriptorGrowth: true,
		DisableRestart:          true,
		Ready:                   func(net.Addr, dunlin.Engine) { close(serving) },
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
		t.Errorf("%+v: want a budget all the same, and no pace", s)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	<-hangups
	select {
	case err := <-ended:
		t.Fatalf("Run has returned %v", err)
	default:
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
