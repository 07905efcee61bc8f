//go:build linux

package stress_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Slow readers of large answers and slow senders of large bodies do not affect other clients or a critical route, on new or
// existing connections, by any protocol.
func TestSlowHolders(t *testing.T) {
	for _, p := range []holderProtocol{{name: "HTTP/1.1"}, {name: "HTTP/1.1 by TLS", secure: true}, {name: "HTTP/2", secure: true, two: true}} {
		for _, limit := range []string{"0", "64MiB"} {
			if p.secure && limit == "0" && !*full {
				continue
			}
			t.Run(p.name+" memory "+limit, func(t *testing.T) { slowHolders(t, p, limit) })
		}
	}
}

func slowHolders(t *testing.T, p holderProtocol, limit string) {
	cert, key := certificate(t)
	plain, secured := unusedAddr(t), unusedAddr(t)
	s := startService(t, nil, nil, "-memory", limit, "-addr", plain, "-tls-addr", secured, "-tls-cert", cert, "-tls-key", key)
	if *full {
		if err := moveToLoadCore(t).serve(s.first.Process.Pid); err != nil {
			t.Fatal(err)
		}
	}
	pid, _ := s.serving()
	_, _ = s.serving()
	p.addr = plain
	if p.secure {
		p.addr = secured
	}
	var kept []asker
	for range 100 {
		c, err := p.quick()
		if err != nil {
			t.Fatal(err)
		}
		defer c.close()
		kept = append(kept, c)
	}
	rounds := either(2, 10)
	alone := p.askAll(t, kept, rounds)

	ctx, cancel := context.WithCancel(t.Context())
	const slow = 200
	var all sync.WaitGroup
	var asked, settled atomic.Int32
	for range slow {
		for _, slowly := range []func(context.Context, slowSteps){p.takeSlowly, p.sendSlowly} {
			all.Go(func() { again(ctx, slowly, func() { asked.Add(1) }, func() { settled.Add(1) }) })
		}
	}
	soon(t, "the slow clients hold what they can", func() bool {
		if asked.Load() < 2*slow {
			return false
		}
		m := statsOf(t, plain).Memory
		return settled.Load() == 2*slow || m.HeldPeak >= m.Budget-m.Budget/8
	})
	beside := p.askAll(t, kept, rounds)
	stats := statsOf(t, plain)
	m, shed := stats.Memory, stats.Shed
	cancel()
	all.Wait()
	after := p.askAll(t, kept, rounds)

	t.Logf("alone p50 %v, p99 %v; beside 200 slow downloads and 200 slow bodies p50 %v, p99 %v (bar: twice as much, or 5 ms); after p50 %v, p99 %v",
		alone.p50, alone.p99, beside.p50, beside.p99, after.p50, after.p99)
	t.Logf("held %.1f MB of %.1f, at the most %.1f; peak of resident memory %.1f MB; %d holders, shed %v",
		float64(m.Held)/mb, float64(m.Budget)/mb, float64(m.HeldPeak)/mb, float64(resident(t, pid, "VmHWM"))/mb, m.Holders, nonZero(shed))
	if bar := max(2*alone.p99, 5*time.Millisecond); *full && beside.p99 > bar {
		t.Errorf("p99 %v, the bar is %v", beside.p99, bar)
	}
	if shed["accept-paused"]+shed["idle-dropped"] > 0 {
		t.Errorf("others were made to pay: %v", shed)
	}
}

func nonZero(counts map[string]uint64) map[string]uint64 {
	counts = maps.Clone(counts)
	maps.DeleteFunc(counts, func(_ string, n uint64) bool { return n == 0 })
	return counts
}

// A holderProtocol is the protocol of slow and quick clients. Each client has its own connection.
type holderProtocol struct {
	name        string
	secure, two bool
	addr        string
}

// dial connects. A slow client has a small receive buffer.
func (p holderProtocol) dial(slow bool) (net.Conn, error) {
	conn, err := net.Dial("tcp", p.addr)
	if err != nil {
		return nil, err
	}
	if slow {
		_ = conn.(*net.TCPConn).SetReadBuffer(16 << 10)
	}
	if p.secure {
		conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true}) // the identity of the certificate is not tested
	}
	return conn, nil
}

// client is an HTTP/2 client that receives at most 64 KiB of an answer ahead of its reader.
func (p holderProtocol) client() *http.Client {
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		Protocols:       new(http.Protocols),
		HTTP2:           &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10, MaxReceiveBufferPerConnection: 64 << 10},
	}
	transport.Protocols.SetHTTP2(true)
	return &http.Client{Transport: transport, Timeout: patience}
}

// An asker is a quick client with a connection.
type asker interface {
	ask(method, addr, path string) error
	close()
}

func (p holderProtocol) quick() (asker, error) {
	if p.two {
		return quickClient{p.client()}, nil
	}
	conn, err := p.dial(false)
	if err != nil {
		return nil, err
	}
	return &quickConn{conn, bufio.NewReader(conn)}, nil
}

// A quickConn is a quick client over HTTP/1.1.
type quickConn struct {
	conn net.Conn
	in   *bufio.Reader
}

func (c *quickConn) close() { _ = c.conn.Close() }

func (c *quickConn) ask(method, _, path string) error {
	_ = c.conn.SetDeadline(time.Now().Add(patience))
	if _, err := fmt.Fprintf(c.conn, "%s %s HTTP/1.1\r\nHost: x\r\n\r\n", method, path); err != nil {
		return err
	}
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return err
	}
	return drained(resp, 1)
}

// A quickClient is a quick client over HTTP/2.
type quickClient struct{ *http.Client }

func (c quickClient) close() { c.CloseIdleConnections() }

func (c quickClient) ask(method, addr, path string) error {
	req, err := http.NewRequest(method, "https://"+addr+path, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	return drained(resp, 2)
}

func drained(resp *http.Response, major int) error {
	_, err := io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if err == nil && (resp.StatusCode != http.StatusOK || resp.ProtoMajor != major) {
		err = fmt.Errorf("status %d by %s", resp.StatusCode, resp.Proto)
	}
	return err
}

// quickTimes are latencies of quick requests.
type quickTimes struct{ p50, p99 time.Duration }

// askAll sends requests in rounds: by 100 new connections, and by the kept ones, which also request a critical route. All
// must be answered.
func (p holderProtocol) askAll(t *testing.T, kept []asker, rounds int) quickTimes {
	t.Helper()
	var took []time.Duration
	timed := func(path string, ask func() error) {
		began := time.Now()
		if err := ask(); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		took = append(took, time.Since(began))
	}
	for range rounds {
		for i, c := range kept {
			timed("/number/1", func() error { return c.ask(http.MethodGet, p.addr, "/number/1") })
			if i%10 == 0 {
				timed("/stats", func() error { return c.ask(http.MethodGet, p.addr, "/stats") })
			}
			timed("a new connection", func() error {
				fresh, err := p.quick()
				if err != nil {
					return err
				}
				defer fresh.close()
				return fresh.ask(http.MethodGet, p.addr, "/number/2")
			})
		}
	}
	slices.Sort(took)
	return quickTimes{took[len(took)/2], took[len(took)*99/100]}
}

// slowSteps are the steps that a slow client reports.
type slowSteps struct {
	asked   func() // the request is sent, except its body
	settled func() // the slow part has begun
}

// again runs a slow client, and reconnects it whenever it is cut off, until ctx ends. It calls asked and settled once each,
// also if the client was refused or cut off earlier.
func again(ctx context.Context, slowly func(context.Context, slowSteps), asked, settled func()) {
	steps := slowSteps{sync.OnceFunc(asked), sync.OnceFunc(settled)}
	for ctx.Err() == nil {
		slowly(ctx, steps)
		steps.asked()
		steps.settled()
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// traced makes an HTTP/2 client report that it has sent its request.
func (s slowSteps) traced(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: s.asked})
}

const slowStep = 100 * time.Millisecond

// takeSlowly reads an answer of 1 MB at 12 KB/s.
func (p holderProtocol) takeSlowly(ctx context.Context, steps slowSteps) {
	const path, piece = "/zeros/1000000", 1200
	if p.two {
		client := p.client()
		defer client.CloseIdleConnections()
		client.Timeout = 0
		req, err := http.NewRequestWithContext(steps.traced(ctx), http.MethodGet, "https://"+p.addr+path, http.NoBody)
		if err != nil {
			return
		}
		resp, err := client.Do(req)
		if err != nil {
			return
		}
		defer func() { _ = resp.Body.Close() }()
		everyStep(ctx, steps.settled, func() bool {
			_, err := io.CopyN(io.Discard, resp.Body, piece)
			return err == nil
		})
		return
	}
	conn, err := p.dial(true)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		return
	}
	steps.asked()
	everyStep(ctx, steps.settled, func() bool {
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		_, err := io.CopyN(io.Discard, conn, piece)
		return err == nil
	})
}

// sendSlowly sends half of a body of 4 MiB, and the rest at 300 B/s.
func (p holderProtocol) sendSlowly(ctx context.Context, steps slowSteps) {
	const size, piece = 4 << 20, 30
	if p.two {
		client := p.client()
		defer client.CloseIdleConnections()
		client.Timeout = 0
		body := &slowBody{ctx: ctx, quick: size / 2, piece: piece, slow: steps.settled}
		req, err := http.NewRequestWithContext(steps.traced(ctx), http.MethodPost, "https://"+p.addr+"/keep", body)
		if err != nil {
			return
		}
		req.ContentLength = size
		if resp, err := client.Do(req); err == nil {
			_ = resp.Body.Close()
		}
		return
	}
	conn, err := p.dial(false)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	if _, err := fmt.Fprintf(conn, "POST /keep HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", size); err != nil {
		return
	}
	steps.asked()
	_ = conn.SetWriteDeadline(time.Now().Add(20 * time.Second))
	if _, err := conn.Write(make([]byte, size/2)); err != nil {
		return
	}
	everyStep(ctx, steps.settled, func() bool {
		_, err := conn.Write(make([]byte, piece))
		return err == nil
	})
}

// A slowBody is read quickly at first, and then a piece in each step.
type slowBody struct {
	ctx          context.Context
	quick, piece int
	slow         func()
}

func (b *slowBody) Read(p []byte) (int, error) {
	if n := min(len(p), b.quick); n > 0 {
		clear(p[:n])
		b.quick -= n
		return n, nil
	}
	b.slow()
	select {
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	case <-time.After(slowStep):
	}
	return min(len(p), b.piece), nil
}

// everyStep calls do in each step while it returns true, and first after the first call.
func everyStep(ctx context.Context, first func(), do func() bool) {
	tick := time.NewTicker(slowStep)
	defer tick.Stop()
	for do() {
		first()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
