//go:build linux

package stress_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// callers are strict clients. Each sends requests on a connection that it keeps while the server does, and never retries: a
// request without an answer is lost. The service may refuse new connections only after it was told to stop, which ends a
// caller.
type callers struct {
	t        *testing.T
	addr     string
	stopping atomic.Bool // the service may refuse
	ending   atomic.Bool // the callers must end
	running  sync.WaitGroup
	count    int64 // number of callers
	ends     int64 // number of processes that end while the callers run
	closes   bool  // the service may close idle connections at any time

	answered atomic.Int64
	opened   atomic.Int64 // connections opened
	renewed  atomic.Int64 // of these, opened because the previous one was closed while idle
	crossed  atomic.Int64 // of these, closed while a request was on its way; it is not retried
	lost     atomic.Int64 // requests sent on connections that were closed without a byte of an answer
	broken   atomic.Int64 // incomplete or wrong answers
	refused  atomic.Int64 // connections refused before the service was told to stop
	other    atomic.Int64 // other failures to connect

	// unaccepted counts connections that the kernel had established when the service stopped, and reset because they were not
	// accepted. A listener without a successor has such a moment, of microseconds. To the client it is a late refusal.
	unaccepted atomic.Int64
}

// maxUnaccepted is the maximum of unaccepted for one stop.
const maxUnaccepted = 2

// A behaviour describes the requests of a caller.
type behaviour struct {
	request string        // head and body; the connection is kept
	size    int64         // length of the answer's body, or -1 if it is not checked
	think   time.Duration // maximum time between an answer and the next request
	once    bool          // a new connection for each request
}

const keptAlive = " HTTP/1.1\r\nHost: holds\r\n\r\n"

// behaviours has the behaviours of ordinary callers.
var behaviours = []behaviour{
	{request: "GET /pid" + keptAlive, size: -1},
	{request: "GET /pid" + keptAlive, size: -1, think: 30 * time.Millisecond},
	{request: "GET /pid" + keptAlive, size: -1, think: 200 * time.Millisecond},
	{request: "GET /pid" + keptAlive, size: -1, think: 3 * time.Millisecond, once: true},
	{request: "GET /sleep/5" + keptAlive, size: -1},
	{request: "GET /stream/1/200000" + keptAlive, size: 200_000, think: 10 * time.Millisecond},
	{request: "POST /upload HTTP/1.1\r\nHost: holds\r\nContent-Length: 1000\r\n\r\n" + strings.Repeat("x", 1000), size: -1},
	{request: "POST /upload HTTP/1.1\r\nHost: holds\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("x", 100_000), size: -1, think: 10 * time.Millisecond},
}

// call starts n callers of each behaviour. The number of processes that end while they run is ends.
func call(t *testing.T, addr string, n, ends int) *callers {
	c := &callers{t: t, addr: addr, ends: int64(ends)}
	c.start(n, behaviours)
	return c
}

func (c *callers) start(n int, behaviours []behaviour) {
	for _, h := range behaviours {
		for range n {
			c.count++
			c.running.Go(func() { c.caller(h) })
		}
	}
}

// caller sends requests until the service refuses one, or the callers must end.
func (c *callers) caller(h behaviour) {
	var conn net.Conn
	defer func() {
		if conn != nil {
			_ = conn.Close()
		}
	}()
	in := bufio.NewReaderSize(nil, 16<<10)
	fresh := false // nothing has been sent on conn
	for !c.ending.Load() {
		if h.think > 0 {
			time.Sleep(rand.N(h.think))
		}
		if conn != nil && closed(conn) {
			c.renewed.Add(1)
			_ = conn.Close()
			conn = nil
		}
		if conn == nil {
			var more bool
			if conn, more = c.connect(); !more {
				return
			}
			if conn == nil {
				continue
			}
			in.Reset(conn)
			fresh = true
		}
		keep := c.exchange(conn, in, h, fresh)
		fresh = false
		if !keep || h.once {
			_ = conn.Close()
			conn = nil
		}
	}
}

// connect opens a connection. more is false if the caller must end.
func (c *callers) connect() (conn net.Conn, more bool) {
	stopping := c.stopping.Load()
	conn, err := net.Dial("tcp", c.addr)
	switch {
	case err == nil:
		c.opened.Add(1)
		return conn, true
	case errors.Is(err, syscall.ECONNRESET) && c.stopping.Load():
		c.unaccepted.Add(1)
	case !errors.Is(err, syscall.ECONNREFUSED):
		c.other.Add(1)
		c.complain("connect: %v", err)
	case !stopping && !c.stopping.Load():
		c.refused.Add(1)
		c.complain("refused")
	default:
		return nil, false
	}
	return nil, true
}

// complain logs the first few failures.
func (c *callers) complain(format string, args ...any) {
	if c.failed() < 10 {
		c.t.Logf("told to stop: %v, "+format, append([]any{c.stopping.Load()}, args...)...)
	}
}

// failed counts the missing or wrong answers of a caller.
func (c *callers) failed() int64 {
	return c.lost.Load() + c.broken.Load() + c.refused.Load() + c.other.Load()
}

// exchange sends a request and reads the answer. It reports whether the connection can be kept.
func (c *callers) exchange(conn net.Conn, in *bufio.Reader, h behaviour, fresh bool) (keep bool) {
	before := acknowledged(conn)
	_, sendErr := io.WriteString(conn, h.request)
	// An answer may arrive before the whole request is sent.
	if _, err := in.Peek(1); err != nil {
		if fresh && c.stopping.Load() && errors.Is(err, syscall.ECONNRESET) {
			c.unaccepted.Add(1)
			return false
		}
		if errors.Is(err, io.EOF) && crossed(conn, before) {
			c.renewed.Add(1)
			c.crossed.Add(1)
			return false
		}
		c.lost.Add(1)
		c.complain("lost: %.20q, sent with %v: %v", h.request, sendErr, err)
		return false
	}
	resp, err := http.ReadResponse(in, nil)
	var size int64
	if err == nil {
		size, err = io.Copy(io.Discard, resp.Body)
	}
	if err == nil && (resp.StatusCode != http.StatusOK || h.size >= 0 && size != h.size) {
		err = fmt.Errorf("status %d and %d bytes", resp.StatusCode, size)
	}
	if err != nil {
		c.broken.Add(1)
		c.complain("broken: %v", err)
		return false
	}
	c.answered.Add(1)
	return !resp.Close
}

// closed reports whether the server has closed a connection. Clients check this before they reuse one.
func closed(conn net.Conn) (gone bool) {
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		return true
	}
	err = raw.Control(func(fd uintptr) {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		_, _ = unix.Poll(poll, 0)
		gone = poll[0].Revents != 0
	})
	return err != nil || gone
}

// crossed reports whether a request was sent to a connection that the server had already closed: the server's system answered
// with a reset and acknowledged no byte of it. A caller may be suspended for any time between the check in closed and the
// sending. If the connection was still open, some bytes of the request are acknowledged; before is the count before the
// sending.
func crossed(conn net.Conn, before uint64) bool {
	reset := false
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) {
		poll := []unix.PollFd{{Fd: int32(fd)}} // POLLERR and POLLHUP
		for end := time.Now().Add(patience); !reset && time.Now().Before(end); {
			_, _ = unix.Poll(poll, 100)
			reset = poll[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
		}
	})
	return reset && acknowledged(conn) == before
}

// acknowledged returns the number of bytes that the peer's system has acknowledged.
func acknowledged(conn net.Conn) (bytes uint64) {
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			bytes = info.Bytes_acked
		}
	})
	return bytes
}

// wantAllAnswered waits for the callers and checks their results.
func (c *callers) wantAllAnswered() {
	c.t.Helper()
	c.running.Wait()
	// Each caller has one connection, which a process closes when it ends. A server that closes more of them after an answer,
	// without Connection: close, does not keep connections alive. If idle ones are closed at other times, few requests cross
	// the close.
	renewed, most := c.renewed.Load(), 2*c.count*c.ends
	if c.closes {
		renewed, most = c.crossed.Load(), most+c.answered.Load()/100
	}
	c.t.Logf("%d requests answered over %d connections, %d of them instead of one that was closed while idle, %d when a request was on its way (bar for %d of these: %d); %d failed (bar: 0), %d reset unaccepted (bar: %d)",
		c.answered.Load(), c.opened.Load(), c.renewed.Load(), c.crossed.Load(), renewed, most, c.failed(), c.unaccepted.Load(), maxUnaccepted)
	if renewed > most {
		c.t.Errorf("%d connections were closed although they were to be kept, of %d callers in %d ends of a process", renewed, c.count, c.ends)
	}
	if c.failed() > 0 || c.unaccepted.Load() > maxUnaccepted || c.answered.Load() == 0 {
		c.t.Errorf("%d requests lost, %d answers broken, %d connections refused before the end, %d failed otherwise",
			c.lost.Load(), c.broken.Load(), c.refused.Load(), c.other.Load())
	}
}
