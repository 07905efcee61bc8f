//go:build linux

package stress_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/bench/internal/load"
	"github.com/dunlinhttp/dunlin/bench/internal/proc"
)

const usersPackage = "github.com/dunlinhttp/dunlin/examples/users"

// listPath is the route that builds a thousand users and encodes them, some 90 KB. It is the example of a blog post about
// memory under load.
const listPath = "/api/v1/users"

// startUsers starts the reference service. The arguments in are a prefix of the command, or nil.
func startUsers(t *testing.T, in []string, args ...string) (p *proc.Process, addr string) {
	t.Helper()
	program := build(t, usersPackage) // may take a while; a port is chosen afterwards
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr = ln.Addr().String()
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	command := append(in, program, "-addr", addr)
	command = append(command, args...)
	for _, name := range []string{"GOMEMLIMIT", "GOGC"} {
		if err := os.Unsetenv(name); err != nil { // the service's own setting is measured
			t.Fatal(err)
		}
	}
	p, err = proc.Start(context.Background(), proc.Command{Path: command[0], Args: command[1:]})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Stop()
		if t.Failed() {
			said := p.Output()
			t.Logf("the service said:\n%s", said[:min(len(said), 4000)])
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := load.FirstAnswer(ctx, addr, "/healthz"); err != nil {
		t.Fatal(err)
	}
	return p, addr
}

// A thousand connections that request a thousand users each take no more memory than the limit of the service, and little more
// than its default without one. No request is refused or waits forever. Beside other tests the queue target is off, because
// other processes take the processors for longer than the target and than wrk waits. The test of callers checks the usual
// target.
func TestThousandConnections(t *testing.T) {
	need(t, "wrk", "wrk")
	for _, c := range []struct {
		name string
		args []string
		bar  int64
	}{
		{"16MiB", []string{"-memory", "16MiB"}, 20 * mb},
		{"default", nil, 32 * mb},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, addr := startUsers(t, nil, append(c.args, either([]string{"-queue-target", "-1ms"}, nil)...)...)
			w := load.Wrk{Threads: 2, Connections: 1000, Path: listPath}
			got, err := w.Run(t.Context(), folders(t).Bench, addr, nil, either(time.Second, 30*time.Second))
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d requests in %v, p99 %v; %d failed (bar: 0)", got.Requests, got.Duration, got.P99, got.Errors())
			atMost(t, "peak of resident memory", resident(t, p.Pid, "VmHWM"), c.bar)
			if !*full {
				repeatedAnswers(t, addr)
			}
			if !*full { // wrk counts answers after more than two seconds as timeouts
				got.Timeouts = 0
			}
			if got.Errors() > 0 || got.Requests == 0 {
				t.Errorf("%d connections failed, %d reads or writes, %d answers, %d timed out", got.Connect, got.IO, got.Status, got.Timeouts)
			}
		})
	}
}

// repeatedAnswers sends requests repeatedly on a few connections. They need less memory than the limit, so each request must
// get a complete answer, however long that takes.
func repeatedAnswers(t *testing.T, addr string) {
	t.Helper()
	const connections, requests = 20, 5
	var size atomic.Int64
	var all sync.WaitGroup
	for range connections {
		conn := connect(t, addr)
		all.Go(func() {
			for range requests {
				_ = conn.SetDeadline(time.Now().Add(4 * patience)) // an error would show below
				resp, err := ask(conn, listPath)
				var read int64
				if err == nil {
					read, err = io.Copy(io.Discard, resp.Body)
				}
				if err == nil && (resp.StatusCode != http.StatusOK || !size.CompareAndSwap(0, read) && size.Load() != read) {
					err = fmt.Errorf("status %d and %d bytes", resp.StatusCode, read)
				}
				if err != nil {
					t.Errorf("after the load: %v", err)
					return
				}
			}
		})
	}
	all.Wait()
}
