//go:build unix

package lifecycle_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/suite"
)

// A signal to the process stops Run, and running requests finish.
func TestRunUntilSignal(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		suite.OnBothEngines(t, func(t *testing.T, engine dunlin.Engine) {
			b := newBlocker()
			ready := make(chan net.Addr, 1)
			app, _ := suite.NewApp(dunlin.Config{Engine: engine, Addr: "127.0.0.1:0", Ready: func(addr net.Addr, _ dunlin.Engine) { ready <- addr }})
			app.Get("/", b.act)
			ran := make(chan error, 1)
			go func() { ran <- app.Run(context.Background()) }()
			addr := suite.Await(t, "Ready", ready).String()
			conn := suite.Dial(t, addr)
			_, _ = io.WriteString(conn, suite.Request("GET /"))
			suite.Await(t, "the request", b.entered)
			if err := syscall.Kill(syscall.Getpid(), signal); err != nil {
				t.Fatal(err)
			}
			refused(t, addr)
			close(b.release)
			got, err := suite.ReadAnswer(bufio.NewReader(conn), "GET")
			if err != nil || !strings.HasSuffix(got, "\n\nfinished") {
				t.Errorf("the running request: got %q, %v", got, err)
			}
			if err := suite.Await(t, "Run", ran); err != nil {
				t.Errorf("Run: %v", err)
			}
		})
	}
}
