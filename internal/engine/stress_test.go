//go:build linux

package engine_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/invariants"
)

// TestStress mixes all kinds of requests: inline, blocking and handed-off, pipelined and in pieces, with abnormal ends, slow
// readers and disconnects. Every answer must match its request.
func TestStress(t *testing.T) {
	h := newLineHandler()
	h.commands["nap"] = func(d *engine.Driver, c *engine.Conn, args string) {
		c.SetHangup(func() {})
		time.Sleep(time.Duration(len(args)) * 200 * time.Microsecond)
		c.SetHangup(nil)
		c.SetDeadline(time.Minute)
		answer(d, args)
	}
	h.commands["detach"] = func(d *engine.Driver, _ *engine.Conn, args string) {
		d.Detach()
		runtime.Gosched()
		answer(d, args)
	}
	h.commands["goexit"] = func(*engine.Driver, *engine.Conn, string) { runtime.Goexit() }
	s := serve(t, engine.Config{Loops: 3, MaxWorkers: 8, IdleWorkers: 4, TakeoverAfter: 100 * time.Microsecond}, h)

	rounds := 150
	if invariants.Enabled {
		rounds = 50
	}
	var clients sync.WaitGroup
	for id := range 24 {
		clients.Add(1)
		go func() {
			defer clients.Done()
			rng := rand.New(rand.NewPCG(uint64(id), 0))
			c := s.dial()
			for round := range rounds {
				input, want, ends := stressRound(rng, fmt.Sprintf("%d.%d", id, round))
				if rng.IntN(12) == 0 {
					c.Write([]byte(input[:rng.IntN(len(input))]))
					c.Close()
					c = s.dial()
					continue
				}
				go sendInPieces(c, input, rng.Uint64())
				c.want(want...)
				if ends {
					c.wantEOF()
					c = s.dial()
				}
			}
			c.Close()
		}()
	}
	clients.Wait()
	eventually(t, "all connections are closed", func() bool { return s.Stats().Conns == 0 })
}

// stressRound returns a batch of requests, their answers, and whether the last
// of them ends the connection.
func stressRound(rng *rand.Rand, name string) (input string, want []string, ends bool) {
	var b strings.Builder
	for i := range 1 + rng.IntN(20) {
		id := fmt.Sprint(name, ".", i, strings.Repeat("x", rng.IntN(4)))
		if rng.IntN(4) == 0 {
			b.WriteString("hand ")
		}
		switch rng.IntN(30) {
		case 0:
			fmt.Fprint(&b, "goexit\n")
			return b.String(), append(want, "abandoned <nil>"), true
		case 1:
			fmt.Fprintf(&b, "close %s\n", id)
			return b.String(), append(want, id), true
		case 2:
			fmt.Fprint(&b, "big 300000\n")
			id = pattern("300000")
		case 3, 4:
			fmt.Fprintf(&b, "nap %s\n", id)
		case 5, 6:
			fmt.Fprintf(&b, "detach %s\n", id)
		default:
			fmt.Fprintf(&b, "echo %s\n", id)
		}
		want = append(want, id)
	}
	return b.String(), want, false
}

func sendInPieces(c *client, input string, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	for len(input) > 0 {
		n := 1 + rng.IntN(len(input))
		if _, err := c.Write([]byte(input[:n])); err != nil {
			return // the answers show whether it was sent
		}
		input = input[n:]
	}
}

// TestNoAllocations serves requests over a real socket and counts allocations.
func TestNoAllocations(t *testing.T) {
	if invariants.Enabled {
		return // the race detector allocates
	}
	h := allocHandler{newLineHandler()}
	c := serve(t, engine.Config{}, h).dial()
	request, reply := []byte("echo 0123456789\n"), make([]byte, 16)
	exchange := func(n int) {
		for range n {
			if _, err := c.Write(request); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Read(reply); err != nil {
				t.Fatal(err)
			}
		}
	}
	exchange(100)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	exchange(10_000)
	runtime.ReadMemStats(&after)
	if n := after.Mallocs - before.Mallocs; n > 50 {
		t.Errorf("%d allocations for 10,000 requests, want none but the runtime's own", n)
	}
}

// allocHandler answers with its input and a deadline, without allocating.
type allocHandler struct{ *lineHandler }

func (h allocHandler) Data(d *engine.Driver, c *engine.Conn, in []byte) int {
	d.Enter()
	d.Out = append(d.Out, in...)
	d.Leave()
	c.SetDeadline(time.Minute)
	return len(in)
}
