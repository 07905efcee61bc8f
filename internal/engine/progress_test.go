//go:build linux

package engine_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/memory"
)

// patience is the time for which a client of TestEveryConnectionMakesProgress waits for its next bytes. It passes only when
// the test fails.
const patience = 20 * time.Second

// Connections wait for many reasons: for a worker, for a call that blocks, for room in their socket, for other peers to read,
// for memory. Random clients lead them from one reason to the other, with bounds so small that all are reached, while the
// engine shuts down. Every client that continues to read is answered in order, or sees the end of its connection, and Shutdown
// returns.
func TestEveryConnectionMakesProgress(t *testing.T) {
	for range 6 {
		seed := rand.Uint64()
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { serveEverybody(t, seed) })
	}
}

func serveEverybody(t *testing.T, seed uint64) {
	const clients, each = 24, 5
	h := waitingHandler()
	rng := rand.New(rand.NewPCG(seed, 0))
	pick := func(values ...int) int { return values[rng.IntN(len(values))] }
	s := serve(t, engine.Config{
		Loops:         1 + rng.IntN(2),
		MaxWorkers:    1 + rng.IntN(3),
		Budget:        memory.New(int64(pick(256<<10, 512<<10, 2<<20))),
		ReadBuffer:    pick(4<<10, 64<<10),
		MaxConns:      pick(10, 1000),
		QueueTarget:   time.Duration(pick(-1, int(time.Millisecond))),
		TakeoverAfter: 200 * time.Microsecond,
		MinWriteRate:  -1,
	}, h)
	end := clients * each
	if rng.IntN(3) > 0 {
		end = rng.IntN(end)
	}
	var begun atomic.Int32
	var all sync.WaitGroup
	ended := make(chan error, 1)
	for id := range clients {
		rng := rand.New(rand.NewPCG(seed, uint64(id)+1))
		all.Go(func() {
			for range each {
				if int(begun.Add(1)) == end {
					go func() {
						ctx, cancel := context.WithTimeout(context.Background(), patience)
						defer cancel()
						ended <- s.Shutdown(ctx)
					}()
				}
				if err := askAtRandom(s.addr, rng); err != nil {
					t.Errorf("got %v; %+v", err, s.Stats())
				}
			}
		})
	}
	all.Wait()
	if end > 0 {
		if err := <-ended; err != nil {
			t.Error("shutdown: ", err)
		}
	}
}

// waitingHandler has commands for every reason for which a call may wait.
func waitingHandler() *lineHandler {
	h := newLineHandler()
	nap := func(args string) { time.Sleep(time.Duration(len(args)) * 100 * time.Microsecond) }
	h.commands["nap"] = func(d *engine.Driver, _ *engine.Conn, args string) {
		nap(args)
		answer(d, args)
	}
	h.commands["write"] = func(d *engine.Driver, c *engine.Conn, args string) {
		if d.Flush(0) == nil {
			_, _ = c.Write([]byte(pattern(args)+"\n"), 0) // the answer shows an error
		}
	}
	h.commands["own"] = func(d *engine.Driver, _ *engine.Conn, args string) {
		d.WriteOwned([]byte(pattern(args)), nil)
		answer(d, "")
	}
	h.commands["timed"] = func(_ *engine.Driver, _ *engine.Conn, args string) { nap(args) }
	h.limits = map[string]time.Duration{"timed": 3 * time.Millisecond}
	h.background = func(d *engine.Driver, _ *engine.Conn, args string) {
		nap(args)
		answer(d, args)
	}
	return h
}

// askAtRandom sends some requests and checks the answers, until the engine closes the connection.
func askAtRandom(addr net.Addr, rng *rand.Rand) error {
	conn, err := net.Dial(addr.Network(), addr.String())
	if err != nil {
		return nil // the engine has ended
	}
	requests, answers := requestsAtRandom(rng)
	pieces, sent := rng.Uint64(), make(chan struct{})
	go func() {
		defer close(sent)
		sendInPieces(&client{Conn: conn}, strings.Join(requests, ""), pieces)
	}()
	defer func() {
		conn.Close()
		<-sent
	}()
	r := bufio.NewReader(conn)
	for i, want := range answers {
		if rng.IntN(10) == 0 {
			time.Sleep(time.Duration(rng.IntN(10)) * time.Millisecond)
		}
		if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
			return err
		}
		got, err := r.ReadString('\n')
		switch got = strings.TrimSuffix(got, "\n"); {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return fmt.Errorf("forgotten: answer %d to %.30q", i, requests)
		case err != nil || got == "refused" || got == "too late":
			return nil
		case got != want && got != "overdue":
			return fmt.Errorf("answer %d to %.30q: %.60q, want %.60q", i, requests, got, want)
		}
	}
	return nil
}

func requestsAtRandom(rng *rand.Rand) (requests, answers []string) {
	for range 1 + rng.IntN(12) {
		args := strings.Repeat("x", 1+rng.IntN(40))
		want := args
		ways := []string{"", "", "hand ", "first "}
		command := []string{"echo", "echo", "nap", "timed", "background", "big", "own", "write"}[rng.IntN(8)]
		switch command {
		case "big", "own", "write":
			args = []string{"100", "10000", "20000", "70000", "300000"}[rng.IntN(5)]
			want = pattern(args)
		case "background":
			ways = ways[:3]
		}
		requests = append(requests, ways[rng.IntN(len(ways))]+command+" "+args+"\n")
		answers = append(answers, want)
	}
	return requests, answers
}
