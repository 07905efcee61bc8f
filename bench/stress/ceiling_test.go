//go:build linux

package stress_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/bench/internal/load"
	"github.com/dunlinhttp/dunlin/bench/internal/proc"
)

// ceiling is the memory limit of the service, in bytes, as in a container of 32 MB.
const ceiling = 32 << 20

// A service in a control group with a memory limit is never killed, regardless of its clients' behaviour.
func TestUnderTheCeiling(t *testing.T) {
	g, err := newGroup(t, ceiling)
	if err != nil {
		missing(t, "a control group with a ceiling cannot be made: %v", err)
	}
	p, addr := startUsers(t, g.enter())
	allAnswered(t, p, addr)
	t.Logf("killed %d times (bar: 0), most memory of the group %.1f MB", g.killed(t), float64(g.peak(t))/mb)
	if g.killed(t) > 0 {
		t.Error("the kernel killed the service")
	}
}

// A service with a configured limit stays within it.
func TestWithinTheLimit(t *testing.T) {
	p, addr := startUsers(t, nil, "-memory", "32MiB")
	allAnswered(t, p, addr)
	atMost(t, "peak of resident memory", resident(t, p.Pid, "VmHWM"), ceiling)
}

// allAnswered runs all kinds of clients at once. The service must answer every accepted request, with the right answer or with
// 503.
func allAnswered(t *testing.T, p *proc.Process, addr string) {
	t.Helper()
	need(t, "wrk", "wrk")
	mixed := everythingAtOnce(t, addr)
	w := load.Wrk{Threads: 2, Connections: either(250, 1000), Path: listPath}
	got, err := w.Run(t.Context(), folders(t).Bench, addr, nil, either(2*time.Second, 30*time.Second))
	mixed.end()
	if err != nil {
		t.Fatal(err)
	}
	lost := got.Connect + got.IO // wrk counts answers after more than two seconds as timeouts, which are allowed
	t.Logf("%d requests, %d of them answered with 503, p99 %v, %d times more than 2 s; %d lost (bar: 0)", got.Requests, got.Status, got.P99, got.Timeouts, lost)
	if lost > 0 || got.Requests == 0 {
		t.Errorf("%d connections failed, %d reads or writes", got.Connect, got.IO)
	}
	t.Logf("uploads: %d answered, %d refused with 503, %d cut off in the middle of the answer (bar: 0); %d lost (bar: 0)",
		mixed.uploaded.Load(), mixed.shed.Load(), mixed.cut.Load(), mixed.lost.Load())
	if cut := mixed.cut.Load(); cut > 0 {
		t.Errorf("%d uploads were cut off in the middle of the answer (bar: 0)", cut)
	}
	if mixed.lost.Load() > 0 || mixed.uploaded.Load() == 0 {
		t.Errorf("%d uploads came to no answer", mixed.lost.Load())
	}
	select {
	case <-p.Done():
		t.Fatal("the service has ended")
	default:
	}
	if resp, err := ask(connect(t, addr), "/healthz"); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("afterwards it answers %v (%v)", resp, err)
	}
}

// A mixedLoad is a combination of all loads that use a server's memory.
type mixedLoad struct {
	t        *testing.T
	addr     string
	ending   atomic.Bool
	running  sync.WaitGroup
	neverIn  *load.Held // clients that never read
	slow     []net.Conn // clients that send a head slowly
	uploaded atomic.Int64
	shed     atomic.Int64
	cut      atomic.Int64 // answers that were cut off
	lost     atomic.Int64
}

// everythingAtOnce starts a mixedLoad: clients that pipeline and never read, incomplete heads, and uploads of a megabyte that
// the service buffers completely and sends back.
func everythingAtOnce(t *testing.T, addr string) *mixedLoad {
	t.Helper()
	c := &mixedLoad{t: t, addr: addr}
	n := either(100, 1000)
	var err error
	if c.neverIn, err = (load.Hold{Addr: addr, Path: listPath, Connections: n, Unread: 50}).Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.neverIn.Close)
	for range n {
		conn := connect(t, addr)
		if _, err := io.WriteString(conn, "GET /json HTTP/1.1\r\nHost: holds\r\nX-Slow: "); err != nil {
			t.Fatal(err)
		}
		c.slow = append(c.slow, conn)
	}
	c.running.Go(c.dribble)
	for range either(16, 64) {
		c.running.Go(c.upload)
	}
	return c
}

// dribble continues the slow heads.
func (c *mixedLoad) dribble() {
	for !c.ending.Load() {
		for _, conn := range c.slow {
			_, _ = io.WriteString(conn, "x") // the service may cut them off
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// upload sends megabytes until the end.
func (c *mixedLoad) upload() {
	body := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	var conn net.Conn
	var in *bufio.Reader
	for !c.ending.Load() {
		if conn == nil {
			var err error
			if conn, err = net.Dial("tcp", c.addr); err != nil {
				c.lost.Add(1)
				c.t.Logf("connect to upload: %v", err)
				return
			}
			in = bufio.NewReader(conn)
		}
		if keep := c.uploadOne(conn, in, body); !keep {
			_ = conn.Close()
			conn = nil
		}
	}
	if conn != nil {
		_ = conn.Close()
	}
}

func (c *mixedLoad) uploadOne(conn net.Conn, in *bufio.Reader, body []byte) (keep bool) {
	_ = conn.SetDeadline(time.Now().Add(patience))
	sent := make(chan error, 1)
	go func() { // an answer may arrive before the whole body is sent
		_, err := fmt.Fprintf(conn, "POST /echo HTTP/1.1\r\nHost: holds\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		sent <- err
	}()
	resp, err := http.ReadResponse(in, nil)
	begun := err == nil
	var back []byte
	if begun {
		back, err = io.ReadAll(resp.Body)
	}
	switch {
	case err != nil && begun && bytes.HasPrefix(body, back):
		c.cut.Add(1) // the client can detect it
	case err != nil:
		if c.lost.Add(1) < 5 {
			c.t.Logf("upload: %v", err)
		}
	case resp.StatusCode == http.StatusServiceUnavailable:
		c.shed.Add(1)
	case resp.StatusCode != http.StatusOK || !bytes.Equal(back, body):
		c.lost.Add(1)
		c.t.Logf("upload: status %d with %d bytes", resp.StatusCode, len(back))
	default:
		c.uploaded.Add(1)
	}
	if err != nil || resp.Close {
		return false
	}
	return <-sent == nil
}

// end ends the load.
func (c *mixedLoad) end() {
	c.ending.Store(true)
	c.running.Wait()
}
