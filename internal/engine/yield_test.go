//go:build linux

package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/engine"
)

// tight is an engine with a memory budget of 64 KiB, and what it counts and logs.
type tight struct {
	*server
	budget *admission.Budget
	shed   *admission.Shed
	logs   *logBuffer
}

const tightBudget = 64 << 10

func serveTight(t *testing.T, cfg engine.Config, h engine.Handler) *tight {
	t.Helper()
	x := &tight{budget: admission.NewBudget(tightBudget), shed: new(admission.Shed), logs: new(logBuffer)}
	cfg.Budget, cfg.Shed, cfg.Logger = x.budget, x.shed, slog.New(slog.NewTextHandler(x.logs, nil))
	x.server = serve(t, cfg, h)
	return x
}

// take uses part of the budget up, as if other connections held it.
func (x *tight) take(n int64) (giveBack func()) {
	x.budget.Force(admission.Stream, n)
	return sync.OnceFunc(func() { x.budget.Release(admission.Stream, n) })
}

// wantLogged checks that a limit was logged by name.
func (x *tight) wantLogged(t *testing.T, what string) {
	t.Helper()
	eventually(t, "logged, with the limit: "+what, func() bool {
		text := x.logs.String()
		return strings.Contains(text, "memory budget of 64 KiB") && strings.Contains(text, what)
	})
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

func TestBusyConnectionIsNotRead(t *testing.T) {
	x := serveTight(t, engine.Config{Loops: 1, MaxPending: tightBudget / 4, StallTime: time.Hour}, newLineHandler())
	other := x.dial()
	other.send("echo before\n")
	other.want("before")
	slow := x.dial()
	slow.send("big 20000000\n")
	eventually(t, "output is pending", func() bool { return x.Stats().PendingBytes >= tightBudget })
	other.send("echo after\n")
	eventually(t, "it is put off", func() bool { return x.shed.Count(admission.ReadPaused) > 0 })
	x.wantLogged(t, "reading pauses")
	slow.want(numbers()[:20_000_000])
	other.want("after")
}

// Under pressure a client that takes nothing is not waited for as long as without, and
// one that reads is served on.
func TestStalledClientsAreCutOffUnderPressure(t *testing.T) {
	x := serveTight(t, engine.Config{Loops: 1, MaxPending: tightBudget / 4, WriteGrace: 24 * time.Hour, OpenTimeout: -1}, newLineHandler())
	other := x.dial()
	other.send("echo before\n")
	other.want("before")
	stalled := x.dial()
	stalled.send("big 20000000\n")
	eventually(t, "output is pending", func() bool { return x.Stats().PendingBytes >= tightBudget })
	other.send("echo after\n")
	eventually(t, "it is cut off", func() bool {
		x.AdvanceClock(100 * time.Millisecond)
		return x.shed.Count(admission.SlowReader) > 0
	})
	other.want("after")
	x.wantLogged(t, "clients that take nothing are cut off")
	if n := x.Stats().PendingBytes; n != 0 {
		t.Errorf("%d bytes are pending", n)
	}
}

// A request in line for a worker whose client does not take answers waits on, and is
// served when it may.
func TestWorkersDoNotAnswerWhatIsHeld(t *testing.T) {
	h := newLineHandler()
	g := newGate(h)
	x := serveTight(t, engine.Config{Loops: 1, MaxWorkers: 1, MaxPending: tightBudget / 4, StallTime: time.Hour}, h)
	waiting, slow := x.dial(), x.dial()
	waiting.send("hand block first\n")
	<-g.entered
	slow.send("echo in\n")
	slow.want("in")
	inLine := x.dial()
	inLine.send("hand echo inline\n")
	eventually(t, "it is in line", func() bool { return x.Stats().JobsQueued == 1 })
	slow.send("big 20000000\n")
	eventually(t, "output is pending", func() bool { return x.Stats().PendingBytes >= tightBudget })
	close(g.open)
	waiting.want("first")
	eventually(t, "it is put off", func() bool { return x.shed.Count(admission.ReadPaused) > 0 })
	slow.want(numbers()[:20_000_000])
	inLine.want("inline")
}

// What is put off so is answered when the engine drains meanwhile, too.
func TestDrainingAnswersWhatIsHeld(t *testing.T) {
	h := newLineHandler()
	entered := make(chan struct{})
	h.commands["drain"] = func(d *engine.Driver, _ *engine.Conn, args string) {
		close(entered)
		for !d.Draining() {
			runtime.Gosched()
		}
		answer(d, args)
	}
	x := serveTight(t, engine.Config{Loops: 1, MaxWorkers: 1, MaxPending: tightBudget / 4, StallTime: time.Hour}, h)
	working, slow, inLine := x.dial(), x.dial(), x.dial()
	working.send("hand drain first\n")
	<-entered
	inLine.send("hand echo second\n")
	eventually(t, "it is in line", func() bool { return x.Stats().JobsQueued == 1 })
	slow.send("big 20000000\n")
	eventually(t, "output is pending", func() bool { return x.Stats().PendingBytes >= tightBudget })
	done := make(chan error, 1)
	go func() { done <- x.Shutdown(context.Background()) }()
	working.want("first")
	eventually(t, "the worker has looked at it", func() bool { return x.Stats().Away == 0 })
	slow.want(numbers()[:20_000_000])
	inLine.want("second")
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestAcceptingPausesForMemory(t *testing.T) {
	x := serveTight(t, engine.Config{Loops: 1}, newLineHandler())
	giveBack := x.take(tightBudget - tightBudget/8)
	defer giveBack()
	c := x.dial() // in the backlog
	c.send("echo at last\n")
	eventually(t, "accepting pauses", func() bool { return x.shed.Count(admission.AcceptPaused) > 0 })
	x.wantLogged(t, "accepting pauses")
	if n := x.Stats().Conns; n != 0 {
		t.Errorf("%d connections were accepted", n)
	}
	giveBack()
	c.want("at last")
	if n := x.shed.Count(admission.AcceptPaused); n != 1 {
		t.Errorf("one pause counts as %d", n)
	}
}

// The connections that have been idle for longest go first, busy and fresh ones stay.
func TestIdleConnectionsAreDroppedOldestFirst(t *testing.T) {
	h := newLineHandler()
	h.commands["echo"] = func(d *engine.Driver, c *engine.Conn, args string) {
		answer(d, args)
		c.SetDeadline(time.Minute)
	}
	x := serveTight(t, engine.Config{Loops: 1}, h)
	use := func(c *client) { c.send("echo x\n"); c.want("x") }
	var open []*client
	for range 40 {
		c := x.dial()
		use(c)
		open = append(open, c)
	}
	x.AdvanceClock(10 * time.Second)
	for _, c := range open[:8] {
		use(c) // and so are the youngest
	}
	unfinished := open[8]
	unfinished.send("echo unfin")
	eventually(t, "it is kept", func() bool { return x.budget.HeldFor(admission.Input) > 0 })
	x.AdvanceClock(10 * time.Second)
	giveBack := x.take(tightBudget - tightBudget/8)
	waiting := x.dial()
	waiting.send("echo at last\n")
	for _, c := range open[9 : 9+16] {
		c.wantEOF()
	}
	giveBack()
	waiting.want("at last")
	if n := x.shed.Count(admission.IdleDropped); n < 16 || n > 31 {
		t.Errorf("%d dropped", n)
	}
	for _, c := range open[:8] {
		use(c)
	}
	unfinished.send("ished\n")
	unfinished.want("unfinished")
	if !strings.Contains(x.logs.String(), "idle ones are closed") {
		t.Errorf("not logged:\n%s", x.logs)
	}
}

func TestWhatHasWaitedLongestIsRefused(t *testing.T) {
	x := serveTight(t, engine.Config{Loops: 1}, newLineHandler())
	part := "echo " + strings.Repeat("x", 4<<10-100) // kept in a buffer of 4 KiB
	var open []*client
	for range tightBudget >> 12 {
		c := x.dial()
		c.send("echo in\n")
		c.want("in")
		open = append(open, c)
		x.AdvanceClock(time.Second)
	}
	for i, c := range open {
		c.send(part)
		eventually(t, "it is kept", func() bool { return x.budget.HeldFor(admission.Input) == int64(i+1)<<12 })
	}
	giveBack := x.take(4 << 10)
	defer giveBack()
	open[3].send("x") // exceeds nothing by itself: what it holds is kept anew
	refused := 1 + (4<<10+tightBudget/16-1)>>12
	for _, c := range open[:refused] {
		c.want("refused")
		c.wantEOF()
	}
	if n := x.shed.Count(admission.NoMemory); n != uint64(refused) {
		t.Errorf("%d are refused, want %d", n, refused)
	}
	x.wantLogged(t, "what has waited longest is refused")
	for i, c := range open[refused:] {
		c.send(fmt.Sprint(i, "\n"))
	}
	for i, c := range open[refused:] {
		text := part[len("echo "):]
		if refused+i == 3 {
			text += "x"
		}
		c.want(text + fmt.Sprint(i))
	}
}

// Requests in line for a worker are refused when nothing unfinished is left.
func TestLineForWorkersIsRefusedFromItsHead(t *testing.T) {
	h := newLineHandler()
	g := newGate(h)
	x := serveTight(t, engine.Config{Loops: 1, MaxWorkers: 1}, h)
	last := x.dial()
	last.send("echo in\n")
	last.want("in")
	busy := x.dial()
	busy.send("hand block busy\n")
	<-g.entered
	var line []*client
	for i := range 4 {
		c := x.dial()
		c.send("hand echo " + fmt.Sprint(i) + strings.Repeat("x", 1000) + "\n")
		line = append(line, c)
		eventually(t, "it is in line", func() bool { return x.Stats().JobsQueued == i+1 })
	}
	if n := x.budget.HeldFor(admission.SetAside); n < 4*4<<10 {
		t.Errorf("%d bytes held for requests set aside", n)
	}
	defer x.take(tightBudget - x.budget.Held())()
	last.send("unfinished")
	last.want("refused")
	line[0].want("refused")
	line[0].wantEOF()
	close(g.open)
	busy.want("busy")
	for i, c := range line {
		if i > 0 {
			c.want(fmt.Sprint(i) + strings.Repeat("x", 1000))
		}
	}
}
