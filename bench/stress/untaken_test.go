//go:build linux

package stress_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/bench/internal/load"
)

// untakenPaths are routes with answers of a megabyte or more, each made in a different way.
var untakenPaths = []string{
	"/late/500/1048576", "/zeros/1048576", "/stream/1/100000000", "/std", "/mounted", "/flood", "/shared", "/cached/1", "/cached/2", "/problem/500000",
}

// With unread answers of all kinds, several times as large as the memory limit, the service stays within its limit, by each
// protocol. Requests of other clients are answered, also those that arrive in pieces. Small requests at a steady rate take at
// most twice as long as without the load. In full runs, each slow client reconnects until the end.
func TestUntakenAnswers(t *testing.T) {
	for _, limit := range []int64{64, 256} {
		for _, p := range []holderProtocol{
			{name: "HTTP/1.1"}, {name: "HTTP/1.1 by TLS", secure: true}, {name: "h2c", two: true}, {name: "h2", secure: true, two: true},
		} {
			if !*full && (limit > 64 || p.secure != p.two) {
				continue
			}
			t.Run(fmt.Sprintf("%d MiB/%s", limit, p.name), func(t *testing.T) { untakenAnswers(t, p, limit) })
		}
	}
}

func untakenAnswers(t *testing.T, p holderProtocol, limit int64) {
	cert, key := certificate(t)
	plain, secured := unusedAddr(t), unusedAddr(t)
	s := startService(t, nil, nil, "-memory", fmt.Sprintf("%dMiB", limit), "-h2c", "-queue-target", "-1ms",
		"-addr", plain, "-tls-addr", secured, "-tls-cert", cert, "-tls-key", key)
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
	alone := steady(t, plain)
	answers, streams := 6*int(limit), 1
	if p.two {
		streams = 48
	}
	clients := max(answers/streams, 2)
	held := make(chan net.Conn, clients) // some clients each second replace the oldest
	open := func(n int) {
		var conn net.Conn
		var err error
		if p.two {
			conn, err = p.untakenStreams(streams, n%2 == 0)
		} else if conn, err = p.untaken(); err == nil {
			_, _ = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", untakenPaths[n%len(untakenPaths)]) // it may be evicted
		}
		if err != nil {
			t.Error(err)
			conn = new(net.TCPConn)
		}
		held <- conn
	}
	for n := range clients {
		open(n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		every := time.NewTicker(steadyTime() / time.Duration(clients))
		defer every.Stop()
		for n := clients; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-every.C:
				_ = (<-held).Close()
				open(n)
			}
		}
	})
	asked, failed := 0, 0
	all.Go(func() {
		for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
			asked++
			if err := askBeside(plain); err != nil {
				failed++
				t.Logf("in pieces: %v", err)
			}
		}
	})
	beside := steady(t, plain)
	cancel()
	all.Wait()
	for range clients {
		_ = (<-held).Close()
	}
	bar := max(2*alone.All.P99, 5*time.Millisecond)
	t.Logf("%d small requests: p50 %v, p99 %v without the load, p50 %v, p99 %v with it (bar: %v), %d failed (bar: 0); generator's lag %v and %v", beside.Due,
		alone.All.P50, alone.All.P99, beside.All.P50, beside.All.P99, bar, beside.Failed(), alone.Lag, beside.Lag)
	if *full && beside.All.P99 > bar {
		t.Errorf("p99 %v, the bar is %v", beside.All.P99, bar)
	}
	failed += int(beside.Failed())
	stats := statsOf(t, plain)
	t.Logf("%d bodies in pieces, %d requests failed (bar: 0); held %.1f MB of %.1f, shed %v", asked, failed,
		float64(stats.Memory.Held)/mb, float64(stats.Memory.Budget)/mb, nonZero(stats.Shed))
	if failed > 0 {
		t.Errorf("%d requests of others failed", failed)
	}
	atMost(t, "peak of resident memory", resident(t, pid, "VmHWM"), limit<<20*11/10)
}

// steadyTime returns the duration of the measurement of small requests.
func steadyTime() time.Duration { return either(2*time.Second, 10*time.Second) }

// steady sends small requests at a steady rate, regardless of the server's answers. Its lead-in is not counted: all slow
// clients connect then, 1,536 of them over HTTP/1.1 at 256 MiB.
func steady(t *testing.T, addr string) load.OpenLoopResult {
	t.Helper()
	ordinary := load.OpenLoop{Addr: addr, Path: "/number/1", Rate: 300, Connections: 16, Duration: steadyTime(), Patience: 5 * time.Second, LeadIn: steadyTime() / 5}
	got, err := ordinary.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// untaken connects as a client that reads little.
func (p holderProtocol) untaken() (net.Conn, error) {
	conn, err := net.Dial("tcp", p.addr)
	if err != nil {
		return nil, err
	}
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	_ = conn.SetDeadline(time.Now().Add(patience))
	if !p.secure {
		return conn, nil
	}
	config := &tls.Config{InsecureSkipVerify: true} // the identity of the certificate is not tested
	if p.two {
		config.NextProtos = []string{"h2"}
	}
	return tls.Client(conn, config), nil
}

// untakenStreams requests answers on streams and reads nothing. The windows of the streams are open or zero.
func (p holderProtocol) untakenStreams(streams int, open bool) (net.Conn, error) {
	conn, err := p.untaken()
	if err != nil {
		return nil, err
	}
	window := uint32(0)
	if open {
		window = 1 << 24
	}
	scheme := byte(0x86)
	if p.secure {
		scheme++
	}
	frame := func(b []byte, kind, flags byte, stream uint32, payload []byte) []byte {
		b = append(b, 0, byte(len(payload)>>8), byte(len(payload)), kind, flags)
		return append(binary.BigEndian.AppendUint32(b, stream), payload...)
	}
	out := frame([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 4, 0, 0, binary.BigEndian.AppendUint32([]byte{0, 4}, window)) // SETTINGS_INITIAL_WINDOW_SIZE
	out = frame(out, 8, 0, 0, []byte{0x40, 0, 0, 0})
	for n := range streams {
		path := untakenPaths[n%len(untakenPaths)]
		block := append([]byte{0x82, scheme, 0x04, byte(len(path))}, path...)
		out = frame(out, 1, 5, uint32(2*n+1), append(block, 1, 1, 'x'))
	}
	_, _ = conn.Write(out) // it may be evicted
	if !open {
		go func() { _, _ = io.Copy(io.Discard, conn) }() // reads the heads
	}
	return conn, nil
}

// askBeside sends a body in pieces, on a separate connection from another address.
func askBeside(addr string) error {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}, Timeout: patience}
	conn, err := dialer.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	half := strings.Repeat("x", 30_000)
	for i, part := range []string{"POST /keep HTTP/1.1\r\nHost: x\r\n", "Content-Length: 60000\r\n\r\n", half, half} {
		if i > 0 {
			time.Sleep(5 * time.Millisecond)
		}
		if _, err := io.WriteString(conn, part); err != nil {
			return err
		}
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%d %s", resp.StatusCode, text)
	}
	return err
}
