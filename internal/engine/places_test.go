//go:build linux

package engine_test

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/memory"
)

// Calls that were taken over count against MaxWorkers: jobs that are handed off meanwhile wait in line, and all other requests
// continue.
func TestTakenOverCallsCountAsWorkers(t *testing.T) {
	onOneProcessor(t, func(t *testing.T) {
		h := newLineHandler()
		g := newGate(h)
		atCapacity := make(chan bool, 1)
		h.commands["atCapacity"] = func(d *engine.Driver, _ *engine.Conn, _ string) {
			atCapacity <- d.AtCapacity()
			answer(d, "")
		}
		s := serve(t, engine.Config{Loops: 1, MaxWorkers: 8}, h)
		probe := s.dial()
		isFull := func() bool {
			probe.send("atCapacity\n")
			probe.want("")
			return <-atCapacity
		}
		var all []*client
		say := func(format string, args ...any) {
			c := s.dial()
			c.send(fmt.Sprintf(format, args...) + "\n")
			all = append(all, c)
		}
		for i := range 8 {
			if isFull() {
				t.Fatalf("atCapacity with %d of 8 calls", i)
			}
			say("block %d", i)
			<-g.entered
			eventually(t, "it is taken over", func() bool { return s.Stats().WorkersBusy == i+1 })
		}
		if !isFull() {
			t.Error("not atCapacity with 8 calls")
		}
		say("hand echo 8")
		eventually(t, "the handed-off job waits", func() bool { return s.Stats().JobsQueued == 1 })
		say("first block 9") // the additional eighth
		<-g.entered
		say("first echo 10")
		eventually(t, "the next urgent one waits, too", func() bool { return s.Stats().JobsQueued == 2 })
		say("block 11") // it was not known to block
		<-g.entered
		eventually(t, "it is taken over", func() bool { return s.Stats().WorkersBusy == 10 })
		close(g.open)
		for i, c := range all {
			c.want(fmt.Sprint(i))
		}
		eventually(t, "no call waits", func() bool { st := s.Stats(); return st.WorkersBusy == 0 && st.JobsQueued == 0 })
	})
}

// A call that waits for its peer, or has begun its answer, does not keep other jobs from a worker.
func TestCallsWaitingForPeersDoNotCountAsWorkers(t *testing.T) {
	for _, prefix := range []string{"hand ", ""} { // on a worker, and taken over
		t.Run(prefix, func(t *testing.T) {
			h := newLineHandler()
			g := newGate(h)
			h.commands["read"] = func(d *engine.Driver, c *engine.Conn, _ string) {
				var b [1]byte
				_, err := c.Read(b[:], time.Minute)
				answer(d, fmt.Sprint(string(b[:]), err))
			}
			h.commands["stream"] = func(d *engine.Driver, c *engine.Conn, args string) {
				d.Answering()
				h.commands["block"](d, c, args)
			}
			s := serve(t, engine.Config{Loops: 1, MaxWorkers: 2}, h)
			read, stream := s.dial(), s.dial()
			read.send(prefix + "read\n")
			eventually(t, "it waits for its peer", func() bool { st := s.Stats(); return st.Away == 1 && st.WorkersBusy == 0 })
			if prefix != "" { // for a takeover during the answer, Away reports that it does not count
				stream.send(prefix + "stream streamed\n")
				<-g.entered
			}
			for i := range 2 {
				c := s.dial()
				c.send(fmt.Sprintf("hand echo %d\n", i))
				c.want(fmt.Sprint(i))
			}
			eventually(t, "no call counts", func() bool { return s.Stats().WorkersBusy == 0 })
			read.send("x")
			read.want("x<nil>")
			close(g.open)
			if prefix != "" {
				stream.want("streamed")
				stream.send("hand echo again\n") // it counts again
				stream.want("again")
			}
			eventually(t, "no call waits", func() bool { return s.Stats().WorkersBusy == 0 })
		})
	}
}

// A call that was taken over holds little memory, regardless of the earlier input of its loop, and the budget counts that
// memory.
func TestMemoryOfTakenOverCalls(t *testing.T) {
	const calls, most = 100, 16 << 10
	h := newLineHandler()
	g := newGate(h)
	budget := memory.New(0)
	s := serve(t, engine.Config{Loops: 1, Budget: budget}, h)
	large := s.dial()
	all := make([]*client, calls)
	for i := range all {
		all[i] = s.dial()
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i, c := range all {
		large.send("echo " + strings.Repeat("x", 30<<10) + "\n")
		if _, err := io.CopyN(io.Discard, large, 30<<10+1); err != nil {
			t.Fatal(err)
		}
		c.send(fmt.Sprintf("block %d\n", i))
		<-g.entered
	}
	eventually(t, "all are taken over", func() bool { return s.Stats().WorkersBusy == calls })
	runtime.GC()
	runtime.ReadMemStats(&after)
	held := budget.HeldFor(memory.Input)
	heap := int64(after.HeapAlloc-before.HeapAlloc) / calls
	t.Logf("%d bytes of heap and %d of the budget for each call", heap, held/calls)
	if heap > most || held > calls*most {
		t.Errorf("want at most %d", most)
	}
	if held < calls*4<<10 {
		t.Errorf("want the input buffer at least in the budget")
	}
	close(g.open)
	for i, c := range all {
		c.want(fmt.Sprint(i))
	}
	eventually(t, "the budget holds nothing", func() bool { return budget.Held() == 0 })
}
