//go:build linux

package holds_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	openStreams   = flag.Int("streams", 5000, "how many streams the tests of open streams hold `open`")
	streamSeconds = flag.Int("stream-seconds", 15, "for how many `seconds` they are counted")
)

// TestOpenStreams holds thousands of streams open, to each of which the reference service sends
// something every second, and says what one costs the service. Nothing may be lost.
func TestOpenStreams(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute and thousands of descriptors")
	}
	for _, c := range []struct {
		path  string
		begin string // what a message starts with, before its number
		most  int    // KB of RSS for each stream
	}{
		{"/events", "id: ", 8},
		{"/ticks", "", 16},
	} {
		t.Run(c.path[1:], func(t *testing.T) {
			server := startUsers(t)
			hold(t, server, c.path, c.begin, 50) // what the service needs once
			before := server.rss(t)
			during := hold(t, server, c.path, c.begin, *openStreams)
			each := float64(during-before) / float64(*openStreams)
			t.Logf("%d streams of %s: RSS %d KB → %d KB, %.2f KB each", *openStreams, c.path, before, during, each)
			if each > float64(c.most) {
				t.Errorf("a stream of %s costs %.2f KB, more than %d", c.path, each, c.most)
			}
		})
	}
}

// hold opens n streams of path, reads from each for a while, and returns the service's RSS in KB at
// the end of that. Every stream must number its messages from 1, without a gap, one a second.
func hold(t *testing.T, server *usersProcess, path, begin string, n int) (rss int) {
	t.Helper()
	var readers sync.WaitGroup
	var received atomic.Int64
	conns := make([]net.Conn, n)
	problems := make(chan error, n)
	for i := range conns {
		conn, err := net.Dial("tcp", server.addr)
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
	time.Sleep(time.Duration(*streamSeconds) * time.Second)
	due := int64(time.Since(start)/time.Second-1) * int64(n)
	if got := received.Load() - base; got < due {
		t.Errorf("%d messages of %s in %v, want at least %d", got, path, time.Since(start), due)
	}
	rss = server.rss(t)
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

// readNumbered counts the messages of a stream until its connection is closed here.
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

// usersProcess is the reference service, running.
type usersProcess struct {
	cmd  *exec.Cmd
	addr string
}

// startUsers builds and starts the reference service, until the test ends.
func startUsers(t *testing.T) *usersProcess {
	t.Helper()
	file := filepath.Join(t.TempDir(), "users")
	build := exec.Command("go", "build", "-o", file, "./examples/users")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, file, "-addr", "127.0.0.1:0", "-engine", "loop")
	cmd.Stderr = io.Discard
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		stop()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait() // it was killed
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	_, rest, found := strings.Cut(line, "http://")
	if err != nil || !found {
		t.Fatalf("the service said %q (%v)", line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, stdout) }()
	addr, _, _ := strings.Cut(rest, " ")
	return &usersProcess{cmd: cmd, addr: addr}
}

// rss returns the resident memory of the process in KB.
func (p *usersProcess) rss(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(status), "\n") {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(value, "kB")))
			if err != nil {
				t.Fatal(err)
			}
			return kb
		}
	}
	t.Fatal("no VmRSS")
	return 0
}
