//go:build linux

package stress_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// Clients that take large answers slowly, and clients that send large bodies slowly, cost others
// nothing: neither those who come nor those who are there, nor a critical route.
func TestSlowHolders(t *testing.T) {
	for _, limit := range []string{"0", "64MiB"} {
		t.Run("memory "+limit, func(t *testing.T) {
			s := startService(t, nil, nil, "-memory", limit)
			pid, addr := s.serving()
			var kept []*quickConn
			for range 100 {
				c := &quickConn{conn: connect(t, addr)}
				c.in = bufio.NewReader(c.conn)
				kept = append(kept, c)
			}
			rounds := either(2, 10)
			alone := askAll(t, addr, kept, rounds)

			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			for range 200 {
				all.Go(func() { again(ctx, addr, takeSlowly) })
				all.Go(func() { again(ctx, addr, sendSlowly) })
			}
			time.Sleep(either(2*time.Second, 10*time.Second)) // until they hold what they can
			beside := askAll(t, addr, kept, rounds)
			m, shed := statsOf(t, addr).Memory, statsOf(t, addr).Shed
			cancel()
			all.Wait()

			t.Logf("alone p50 %v, p99 %v; beside 200 slow downloads and 200 slow bodies p50 %v, p99 %v (bar: twice as much, or 5 ms)",
				alone.p50, alone.p99, beside.p50, beside.p99)
			t.Logf("held %.1f MB of %.1f, at the most %.1f; peak of resident memory %.1f MB; %d holders, shed %v",
				float64(m.Held)/mb, float64(m.Budget)/mb, float64(m.HeldPeak)/mb, float64(resident(t, pid, "VmHWM"))/mb, m.Holders, shed)
			if bar := max(2*alone.p99, 5*time.Millisecond); *full && beside.p99 > bar {
				t.Errorf("p99 %v, the bar is %v", beside.p99, bar)
			}
			if shed["accept-paused"]+shed["idle-dropped"] > 0 {
				t.Errorf("others were made to pay: %v", shed)
			}
		})
	}
}

// quickConn is a connection that stays.
type quickConn struct {
	conn net.Conn
	in   *bufio.Reader
}

// quickTimes are how long quick requests took.
type quickTimes struct{ p50, p99 time.Duration }

// askAll has 100 new and the kept connections ask, the latter also a critical route, in rounds.
// All must be answered.
func askAll(t *testing.T, addr string, kept []*quickConn, rounds int) quickTimes {
	t.Helper()
	var took []time.Duration
	one := func(c *quickConn, path string) {
		began := time.Now()
		_ = c.conn.SetDeadline(began.Add(patience))
		if _, err := fmt.Fprintf(c.conn, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		resp, err := http.ReadResponse(c.in, nil)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d, %v", path, resp.StatusCode, err)
		}
		took = append(took, time.Since(began))
	}
	for range rounds {
		for i, c := range kept {
			one(c, "/number/1")
			if i%10 == 0 {
				one(c, "/stats")
			}
			began := time.Now()
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			one(&quickConn{conn, bufio.NewReader(conn)}, "/number/2")
			took[len(took)-1] = time.Since(began)
			_ = conn.Close()
		}
	}
	slices.Sort(took)
	return quickTimes{took[len(took)/2], took[len(took)*99/100]}
}

// again has a slow client come back, as often as it is cut off, until it may not.
func again(ctx context.Context, addr string, slowly func(ctx context.Context, conn net.Conn)) {
	for ctx.Err() == nil {
		if conn, err := net.Dial("tcp", addr); err == nil {
			slowly(ctx, conn)
			_ = conn.Close()
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

const slowStep = 100 * time.Millisecond

// takeSlowly takes an answer of 1 MB at 12 KB/s.
func takeSlowly(ctx context.Context, conn net.Conn) {
	_ = conn.(*net.TCPConn).SetReadBuffer(16 << 10)
	if _, err := io.WriteString(conn, "GET /zeros/1000000 HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		return
	}
	everyStep(ctx, func() bool {
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		_, err := io.CopyN(io.Discard, conn, 1200)
		return err == nil
	})
}

// sendSlowly sends half of a body of 4 MiB, and the rest at 300 B/s.
func sendSlowly(ctx context.Context, conn net.Conn) {
	const size = 4 << 20
	if _, err := fmt.Fprintf(conn, "POST /keep HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", size); err != nil {
		return
	}
	_ = conn.SetWriteDeadline(time.Now().Add(20 * time.Second))
	if _, err := conn.Write(make([]byte, size/2)); err != nil {
		return
	}
	everyStep(ctx, func() bool {
		_, err := conn.Write(make([]byte, 30))
		return err == nil
	})
}

func everyStep(ctx context.Context, do func() bool) {
	tick := time.NewTicker(slowStep)
	defer tick.Stop()
	for do() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
