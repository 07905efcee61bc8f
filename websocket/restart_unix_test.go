//go:build unix

package websocket_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/suite"
	"github.com/dunlinhttp/dunlin/websocket"
)

const engineVariable = "DUNLIN_TEST_SOCKETS"

// TestService is the program that TestRestart runs, with the engine of a variable; otherwise it does nothing. It prints its process
// ID and its address for each listener.
func TestService(t *testing.T) {
	engine := os.Getenv(engineVariable)
	if engine == "" {
		return
	}
	config := dunlin.Config{
		Addr:    "127.0.0.1:0",
		TLS:     dunlin.TLSConfig{Addr: "127.0.0.1:0", Cert: os.Getenv("TEST_CERT"), Key: os.Getenv("TEST_KEY")},
		Logger:  slog.New(slog.DiscardHandler),
		Process: dunlin.ProcessConfig{DrainTimeout: patience},
		Ready:   func(addr net.Addr, _ dunlin.Engine) { fmt.Println(os.Getpid(), addr) },
	}
	if err := config.Engine.UnmarshalText([]byte(engine)); err != nil {
		t.Fatal(err)
	}
	app := dunlin.New(config)
	app.Get("/", func(r *dunlin.Request) dunlin.Response {
		return websocket.Accept(r, websocket.Options{Reconnect: time.Second})
	})
	if err := app.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	os.Exit(0)
}

// A restart closes WebSockets with 1012 when the new process serves, and a shutdown with 1001.
func TestRestart(t *testing.T) {
	suite.OnBothEngines(t, func(t *testing.T, engine dunlin.Engine) {
		certFile, keyFile, trusted := suite.NewCert(t)
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(exe, "-test.run=^TestService$")
		cmd.Env = append(os.Environ(), engineVariable+"="+engine.String(), "TEST_CERT="+certFile, "TEST_KEY="+keyFile)
		cmd.Stderr, cmd.SysProcAttr = os.Stderr, &syscall.SysProcAttr{Setpgid: true}
		out, in, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdout = in
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		_ = in.Close()
		lines := bufio.NewReader(out)
		t.Cleanup(func() {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the new process, too
			_ = cmd.Wait()
			_, _ = io.Copy(io.Discard, lines)
			_ = out.Close()
		})
		var pid int
		var clear, secure string
		serving := func() {
			t.Helper()
			for _, addr := range []*string{&clear, &secure} {
				if _, err := fmt.Fscanln(lines, &pid, addr); err != nil {
					t.Fatal(err)
				}
			}
		}
		closedBy := func(sig syscall.Signal, code websocket.Code, reason string) {
			t.Helper()
			var open []*client
			for _, conn := range []net.Conn{
				dialed(t)(net.Dial("tcp", clear)),
				dialed(t)(tls.Dial("tcp", secure, &tls.Config{RootCAs: trusted})),
			} {
				c, _ := handshake(t, conn)
				open = append(open, c)
			}
			if err := syscall.Kill(pid, sig); err != nil {
				t.Fatal(err)
			}
			for _, c := range open {
				c.expect(closed(code, reason))
				c.send(frame(closes, closing(code, "")))
				if rest := c.rest(); len(rest) > 0 {
					t.Errorf("more frames: %q", rest)
				}
			}
		}
		serving()
		closedBy(syscall.SIGHUP, websocket.Restart, "server is restarting: reconnect within 1000 ms")
		serving()
		closedBy(syscall.SIGTERM, websocket.GoingAway, "server is shutting down: reconnect within 1000 ms")
	})
}
