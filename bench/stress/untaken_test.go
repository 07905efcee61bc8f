//go:build linux

package stress_test

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// untakenPaths are routes whose answers take a megabyte or more, each made in another way.
var untakenPaths = []string{"/late/500/1048576", "/zeros/1048576", "/stream/1/100000000", "/std", "/flood", "/shared"}

// Answers of all kinds that clients do not take, several times as much as there is room for, stay within the memory limit by each
// protocol, and requests of others are answered, also those that come in pieces.
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
	pid, _ := s.serving()
	_, _ = s.serving()
	p.addr = plain
	if p.secure {
		p.addr = secured
	}
	answers := 6 * int(limit)
	if p.two {
		const streams = 48
		for n := range max(answers/streams, 2) {
			defer p.untakenStreams(t, streams, n%2 == 0).Close()
		}
	} else {
		for n := range answers {
			conn := p.untaken(t)
			defer conn.Close()
			_, _ = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", untakenPaths[n%len(untakenPaths)]) // it may be evicted
		}
	}
	asked, failed := 0, 0
	for end := time.Now().Add(either(2*time.Second, 10*time.Second)); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		for _, pieces := range []bool{false, true} {
			asked++
			if err := askBeside(plain, pieces); err != nil {
				failed++
				t.Logf("in pieces: %v: %v", pieces, err)
			}
		}
	}
	stats := statsOf(t, plain)
	t.Logf("%d requests of others, %d failed (bar: 0); held %.1f MB of %.1f, shed %v", asked, failed,
		float64(stats.Memory.Held)/mb, float64(stats.Memory.Budget)/mb, nonZero(stats.Shed))
	if failed > 0 {
		t.Errorf("%d of %d requests of others failed", failed, asked)
	}
	atMost(t, "peak of resident memory", resident(t, pid, "VmHWM"), limit<<20*11/10)
}

// untaken connects as a client that takes little.
func (p holderProtocol) untaken(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.addr)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	_ = conn.SetDeadline(time.Now().Add(patience))
	if !p.secure {
		return conn
	}
	config := &tls.Config{InsecureSkipVerify: true} // what is looked at is not whose certificate it is
	if p.two {
		config.NextProtos = []string{"h2"}
	}
	return tls.Client(conn, config)
}

// untakenStreams asks for answers on streams whose windows are open while nothing is read, or are shut.
func (p holderProtocol) untakenStreams(t *testing.T, streams int, open bool) net.Conn {
	t.Helper()
	conn, window := p.untaken(t), uint32(0)
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
		go func() { _, _ = io.Copy(io.Discard, conn) }() // heads
	}
	return conn
}

// askBeside asks for a number, or sends a body in pieces, on a connection of its own from another address.
func askBeside(addr string, pieces bool) error {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}, Timeout: patience}
	conn, err := dialer.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	parts := []string{"GET /number/1 HTTP/1.1\r\nHost: x\r\n\r\n"}
	if pieces {
		half := strings.Repeat("x", 30_000)
		parts = []string{"POST /keep HTTP/1.1\r\nHost: x\r\n", "Content-Length: 60000\r\n\r\n", half, half}
	}
	for i, part := range parts {
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
