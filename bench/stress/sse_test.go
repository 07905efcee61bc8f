//go:build linux

package stress_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestOpenStreams keeps thousands of streams open, on each of which the reference service sends an event every second, and
// logs the memory for each. No event may be lost.
func TestOpenStreams(t *testing.T) {
	open := either(1000, 5000)
	for _, c := range []struct {
		path  string
		begin string // the beginning of a message, before its number
		most  int    // bytes of RSS for each stream
	}{
		{"/events", "id: ", 8 << 10},
		{"/ticks", "", 16 << 10},
	} {
		t.Run(c.path[1:], func(t *testing.T) {
			server, addr := startUsers(t, nil, "-engine", "loop")
			holdStreams(t, server.Pid, addr, c.path, c.begin, 50) // warm up
			before := resident(t, server.Pid, "VmRSS")
			during := holdStreams(t, server.Pid, addr, c.path, c.begin, open)
			each := float64(during-before) / float64(open)
			t.Logf("%d streams of %s: RSS %d → %d bytes, %.0f each (bar: %d)", open, c.path, before, during, each, c.most)
			if *full && each > float64(c.most) { // with few streams, the growth of the heap dominates
				t.Errorf("a stream of %s costs %.0f bytes, more than %d", c.path, each, c.most)
			}
		})
	}
}

// holdStreams opens n streams of path, reads from each for a while, and then returns the service's RSS in KB. Every stream
// must number its messages from 1, without a gap, one a second.
func holdStreams(t *testing.T, pid int, addr, path, begin string, n int) (rss int64) {
	t.Helper()
	var readers sync.WaitGroup
	var received atomic.Int64
	conns := make([]net.Conn, n)
	problems := make(chan error, n)
	for i := range conns {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		conns[i] = conn
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: users.example\r\nUser-Agent: holds\r\nAccept: */*\r\n\r\n", path)
		readers.Go(func() {
			if err := readNumbered(conn, begin, &received); err != nil {
				problems <- err
			}
		})
	}
	start, base := time.Now(), received.Load()
	if *full {
		time.Sleep(15 * time.Second)
		due := int64(time.Since(start)/time.Second-1) * int64(n)
		if got := received.Load() - base; got < due {
			t.Errorf("%d messages of %s in %v, want at least %d", got, path, time.Since(start), due)
		}
	} else {
		soon(t, "as many messages as there are streams", func() bool { return received.Load()-base >= int64(n) })
	}
	rss = resident(t, pid, "VmRSS")
	for _, conn := range conns {
		conn.Close()
	}
	readers.Wait()
	close(problems)
	for err := range problems {
		t.Fatal(err)
	}
	return rss
}

// readNumbered counts the messages of a stream until this end closes the connection.
func readNumbered(conn net.Conn, begin string, received *atomic.Int64) error {
	r := bufio.NewReaderSize(conn, 512)
	status, err := r.ReadString('\n')
	if err != nil || !strings.Contains(status, " 200 ") {
		return fmt.Errorf("answer %q: %w", status, err)
	}
	body := false
	for next := 1; ; {
		line, err := r.ReadSlice('\n')
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case err != nil:
			return fmt.Errorf("before message %d: %w", next, err)
		case len(bytes.TrimSpace(line)) == 0 && !body:
			body = true
			continue
		case !body || begin == "" && !bytes.HasSuffix(line, []byte(" tick\n")) || !bytes.HasPrefix(line, []byte(begin)):
			continue
		}
		number, _, _ := strings.Cut(strings.TrimSpace(string(line[len(begin):])), " ")
		if number != strconv.Itoa(next) {
			return fmt.Errorf("message %q, want number %d", line, next)
		}
		next++
		received.Add(1)
	}
}
