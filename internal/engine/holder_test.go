//go:build linux

package engine_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/memory"
)

// tight is an engine with a memory budget, and its counts and log.
type tight struct {
	*server
	budget *memory.Budget
	shed   *admission.Shed
	logs   *logBuffer
}

// tightBudget is so small that one answer without a reader exceeds it.
const tightBudget = 1 << 20

func serveTight(t *testing.T, cfg engine.Config, h engine.Handler) *tight {
	t.Helper()
	x := &tight{budget: memory.New(tightBudget), shed: new(admission.Shed), logs: new(logBuffer)}
	cfg.Budget, cfg.Shed, cfg.Logger = x.budget, x.shed, slog.New(slog.NewTextHandler(x.logs, nil))
	x.server = serve(t, cfg, h)
	return x
}

// fill charges part of the budget without an account.
func (x *tight) fill(n int64) (giveBack func()) {
	x.budget.Force(memory.Output, n)
	return sync.OnceFunc(func() { x.budget.Force(memory.Output, -n) })
}

type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// copies makes h answer "own n" with n bytes of memory that only this answer uses.
func copies(h *lineHandler) *lineHandler {
	h.commands["own"] = func(d *engine.Driver, _ *engine.Conn, args string) {
		d.WriteOwned(append([]byte(pattern(args)), '\n'), nil)
	}
	return h
}

// filling is the size of an answer that is partly pending if its peer does not read: no system buffers as much between a socket
// and its peer.
const filling = 12_000_000

// One answer may be larger than the budget. Meanwhile other connections are accepted and served, idle ones as well.
func TestOneAnswerMayExceedBudget(t *testing.T) {
	x := serveTight(t, engine.Config{Loops: 1}, copies(newLineHandler()))
	idle := x.dial()
	idle.send("echo before\n")
	idle.want("before")
	slow := x.dial()
	slow.send("own " + strconv.Itoa(filling) + "\n")
	eventually(t, "more is pending than the budget", func() bool { return x.Stats().PendingBytes > tightBudget })
	for i := range 50 {
		c := x.dial()
		c.send(fmt.Sprintln("echo", i))
		c.want(fmt.Sprint(i))
	}
	idle.send("big 100000\necho after\n")
	idle.want(pattern("100000"), "after")
	slow.want(pattern(strconv.Itoa(filling)))
	if n := x.shed.Count(admission.LargestHolder); n != 0 {
		t.Errorf("%d were ended", n)
	}
}

// Of several peers that do not read their answers, the one with the highest cost is cut off.
func TestCostliestHolderIsEvicted(t *testing.T) {
	x := serveTight(t, engine.Config{Loops: 2, OpenTimeout: -1}, copies(newLineHandler()))
	other := x.dial()
	other.send("echo before\n")
	other.want("before")
	var stalled []*client
	for i := range 8 {
		c := x.dial()
		c.send("own " + strconv.Itoa(filling) + "\n")
		eventually(t, "it is pending, and others were cut off", func() bool { return x.shed.Count(admission.LargestHolder) >= uint64(i) })
		stalled = append(stalled, c)
		x.AdvanceClock(10 * time.Second)
	}
	eventually(t, "one answer beyond the budget remains", func() bool { return x.Stats().Conns <= 2 })
	if text := x.logs.String(); !strings.Contains(text, "memory budget of 1024 KiB") || !strings.Contains(text, "hold the most memory for the longest time") {
		t.Errorf("not logged:\n%s", text)
	}
	other.send("echo after\n")
	other.want("after")
	cut := 0
	for _, c := range stalled {
		if n, _ := io.CopyN(io.Discard, c.r, filling); n < filling {
			cut++
		}
	}
	if cut != len(stalled)-1 {
		t.Errorf("%d were cut off, want all but one", cut)
	}
}

// The largest partial request is refused first, with an answer.
func TestLargestPartialRequestIsRefused(t *testing.T) {
	x := serveTight(t, engine.Config{Loops: 2, ReadBuffer: 512 << 10}, newLineHandler())
	var small []*client
	for range 20 {
		c := x.dial()
		c.send("echo " + strings.Repeat("x", 10_000)) // kept in 16 KiB
		small = append(small, c)
	}
	eventually(t, "they are kept", func() bool { return x.budget.HeldFor(memory.Input) >= 20*10_000 })
	var large []*client
	for range 4 {
		c := x.dial()
		c.send("echo " + strings.Repeat("x", 300<<10))
		large = append(large, c)
		x.AdvanceClock(10 * time.Second)
	}
	eventually(t, "one is refused", func() bool { return x.shed.Count(admission.LargestHolder) > 0 })
	told := make(chan string, len(large))
	for _, c := range large { // either, since it depends on the speed of their clients
		go func() {
			line, _ := c.r.ReadString('\n')
			told <- line
		}()
	}
	if line := <-told; line != "refused\n" {
		t.Errorf("the first large holder to get an answer got %q", line)
	}
	for _, c := range small {
		c.send("\n")
		c.want(strings.Repeat("x", 10_000))
	}
}

// When all memory is held by small holders, one of them is refused.
func TestSmallHolderIsRefusedWhenMemoryIsFull(t *testing.T) {
	x := serveTight(t, engine.Config{Loops: 2}, newLineHandler())
	const each = 50_000 // kept in 64 KiB
	var all []*client
	for range tightBudget/(64<<10) + 3 {
		c := x.dial()
		c.send("echo " + strings.Repeat("x", each))
		all = append(all, c)
	}
	eventually(t, "some are refused", func() bool { return x.shed.Count(admission.LargestHolder) >= 3 })
	answered := 0
	for _, c := range all {
		_, _ = io.WriteString(c, "\n") // it may be closed
		line, err := c.r.ReadString('\n')
		switch {
		case err == nil && line == strings.Repeat("x", each)+"\n":
			answered++
		case err != nil || line != "refused\n":
			t.Errorf("got %.20q, %v", line, err)
		}
	}
	if answered < tightBudget/(64<<10)-2 {
		t.Errorf("%d of %d were answered", answered, len(all))
	}
}

// A goroutine that reads a body, or writes a stream, gets an error when its memory is needed.
func TestBlockedHoldersAreEvicted(t *testing.T) {
	t.Run("reading", func(t *testing.T) {
		h := newLineHandler()
		began, ended := make(chan bool, 1), make(chan error, 1)
		h.commands["body"] = func(d *engine.Driver, c *engine.Conn, _ string) {
			a := c.Account()
			began <- a.Reserve(memory.Body, tightBudget*3/4) == memory.Granted
			_, err := c.Read(make([]byte, 10), 0)
			a.Release(memory.Body, tightBudget*3/4)
			answer(d, "ended")
			ended <- err
			c.CloseLingering()
		}
		x := serveTight(t, engine.Config{Loops: 1, ReadBuffer: 512 << 10}, h)
		c := x.dial()
		c.send("body\n")
		if !<-began {
			t.Fatal("no memory")
		}
		x.AdvanceClock(time.Minute)
		other := x.dial()
		other.send("echo " + strings.Repeat("x", tightBudget/3))
		if err := <-ended; !errors.Is(err, engine.ErrNoRoom) {
			t.Errorf("Read failed with %v", err)
		}
		c.want("ended")
		c.wantEOF()
		other.send("\n")
		other.want(strings.Repeat("x", tightBudget/3))
	})
	t.Run("writing", func(t *testing.T) {
		h := newLineHandler()
		ended := make(chan error, 1)
		h.commands["stream"] = func(d *engine.Driver, c *engine.Conn, _ string) {
			var err error
			for err == nil {
				d.WriteOwned(make([]byte, tightBudget*3/4), nil)
				err = d.Flush(0)
			}
			ended <- err
			c.Close()
		}
		x := serveTight(t, engine.Config{Loops: 1, ReadBuffer: 512 << 10, WriteGrace: 24 * time.Hour}, h)
		c := x.dial()
		c.send("stream\n")
		eventually(t, "it waits", func() bool { return x.Stats().PendingBytes > 0 })
		// While its socket still accepted output, the other is the slower one.
		var other *client
		var heard chan string
		ask := func() {
			x.AdvanceClock(time.Minute)
			other, heard = x.dial(), make(chan string, 1)
			go func(c *client, heard chan<- string) {
				line, _ := c.r.ReadString('\n')
				heard <- line
			}(other, heard)
			other.send("echo " + strings.Repeat("x", tightBudget/3))
		}
		ask()
		for over := false; !over; {
			select {
			case err := <-ended:
				if !errors.Is(err, engine.ErrNoRoom) {
					t.Errorf("the stream ended with %v", err)
				}
				over = true
			case line := <-heard:
				if line != "refused\n" {
					t.Fatalf("told %q", line)
				}
				ask()
			}
		}
		other.send("\n")
		if line := <-heard; line != strings.Repeat("x", tightBudget/3)+"\n" {
			t.Errorf("told %.20q", line)
		}
	})
}

// A body that the application made once and sends to many clients is charged once, in parts.
func TestSharedBodyIsChargedOnce(t *testing.T) {
	h := newLineHandler()
	body := append([]byte(pattern(strconv.Itoa(filling))), '\n')
	h.commands["shared"] = func(d *engine.Driver, _ *engine.Conn, _ string) { d.WriteOwned(body, nil) }
	x := &tight{budget: memory.New(2 * filling), shed: new(admission.Shed)}
	x.server = serve(t, engine.Config{Loops: 2, Budget: x.budget, Shed: x.shed}, h)
	var all []*client
	for range 6 {
		c := x.dial()
		c.send("shared\n")
		all = append(all, c)
	}
	// A connection counts as pending shortly before its part is charged.
	eventually(t, "all wait for their readers and are charged", func() bool {
		stats := x.Stats()
		return stats.PendingConns == len(all) && stats.PendingBytes >= int64(cap(body))
	})
	if n := x.Stats().PendingBytes; n < int64(cap(body)) || n > int64(cap(body)+len(all)) {
		t.Errorf("%d bytes are held, want the %d of one", n, cap(body))
	}
	for _, c := range all {
		c.want(pattern(strconv.Itoa(filling)))
	}
	eventually(t, "nothing is held", func() bool { return x.budget.Held() == 0 })
	if n := x.shed.Count(admission.LargestHolder); n != 0 {
		t.Errorf("%d were ended", n)
	}
}

// Held memory does not stop accepting, and idle connections stay open.
func TestHeldMemoryDoesNotStopAccepting(t *testing.T) {
	x := serveTight(t, engine.Config{Loops: 1}, newLineHandler())
	idle := x.dial()
	idle.send("echo idle\n")
	idle.want("idle")
	defer x.fill(tightBudget)()
	x.AdvanceClock(time.Minute / 2)
	for i := range 100 {
		c := x.dial()
		c.send(fmt.Sprintln("echo", i))
		c.want(fmt.Sprint(i))
		c.Close()
	}
	idle.send("echo still\n")
	idle.want("still")
	if n := x.shed.Count(admission.AcceptPaused) + x.shed.Count(admission.IdleDropped); n != 0 {
		t.Errorf("%d pauses and closed connections", n)
	}
}
