//go:build linux

package engine_test

import (
	"errors"
	"io"
	"math"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/engine"
)

// readUntil has the client read until a condition holds.
func (c *client) readUntil(condition func() bool) {
	c.t.Helper()
	n, buf := 0, make([]byte, 16<<10)
	for !condition() {
		k, err := io.ReadFull(c.r, buf)
		n += k
		if err != nil {
			c.t.Fatalf("after %d bytes: %v", n, err)
		}
	}
}

// readBytes reads n bytes.
func (c *client) readBytes(n int) int {
	c.t.Helper()
	if k, err := io.CopyN(io.Discard, c.r, int64(n)); err != nil {
		c.t.Fatalf("after %d bytes: %v", k, err)
	}
	return n
}

// discard reads until the end.
func (c *client) discard() {
	c.t.Helper()
	if _, err := io.Copy(io.Discard, c.r); err != nil {
		c.t.Fatal(err)
	}
}

// awaitTurn waits until the only loop has done all of its pending work.
func (c *client) awaitTurn() {
	c.t.Helper()
	for range 2 { // the second answer proves that the turn of the first is over
		c.send("echo\n")
		c.want("")
	}
}

// More bytes than any system buffers between a socket and its peer, so that output is pending until nearly all was read.
const (
	muchOutput = 20_000_000
	atOnce     = 2_000_000
)

// A peer that reads its output at the minimum rate keeps its connection. A peer below the rate loses it, although it reads
// all the time.
func TestMinWriteRate(t *testing.T) {
	const grace = 10 * time.Minute // much longer than the test
	size := strconv.Itoa(muchOutput)
	t.Run("enough", func(t *testing.T) {
		s := serve(t, engine.Config{Loops: 1, OpenTimeout: -1, WriteGrace: grace, MinWriteRate: 60}, newLineHandler())
		c, other := s.dial(), s.dial()
		c.send("big " + size + "\n")
		eventually(t, "output is pending", func() bool { return s.Stats().PendingBytes > 0 })
		other.awaitTurn() // the whole output is pending
		taken := 0
		for taken < muchOutput/2 {
			taken += c.readBytes(atOnce)
			s.AdvanceClock(grace + time.Second)
			other.awaitTurn()
		}
		c.want(pattern(size)[taken:])
	})
	t.Run("too little", func(t *testing.T) {
		var shed admission.Shed
		s := serve(t, engine.Config{Loops: 1, OpenTimeout: -1, WriteGrace: grace, MinWriteRate: math.MaxInt32, Shed: &shed}, newLineHandler())
		c, other := s.dial(), s.dial()
		c.send("big " + size + "\n")
		eventually(t, "output is pending", func() bool { return s.Stats().PendingBytes > 0 })
		other.awaitTurn() // the whole output is pending
		c.readBytes(atOnce)
		s.AdvanceClock(grace + time.Second)
		eventually(t, "the peer is cut off", func() bool { return s.Stats().Conns == 1 })
		if n := shed.Count(admission.SlowReader); n != 1 {
			t.Errorf("%d counted, want 1", n)
		}
	})
}

// The minimum rate also applies to a goroutine that waits to send: a stream.
func TestMinWriteRateOfStream(t *testing.T) {
	var stop atomic.Bool
	var written atomic.Int64 // calls of Write that have returned
	stream := func(h *lineHandler) (begun chan *engine.Conn, ended chan error) {
		begun, ended = make(chan *engine.Conn, 1), make(chan error, 1)
		p := make([]byte, 1<<20)
		h.commands["stream"] = func(d *engine.Driver, c *engine.Conn, _ string) {
			begun <- c
			var err error
			for err == nil && !stop.Load() {
				_, err = c.Write(p, 0)
				written.Add(1)
			}
			ended <- err
			c.Close()
		}
		return begun, ended
	}
	t.Run("enough", func(t *testing.T) {
		const grace = 10 * time.Minute
		h := newLineHandler()
		begun, ended := stream(h)
		s := serve(t, engine.Config{WriteGrace: grace, MinWriteRate: 60}, h)
		c := s.dial()
		c.send("stream\n")
		served := <-begun
		for range 6 {
			eventually(t, "the stream waits", served.Waits)
			// A wake-up of the stream shows the time that it has waited. A period ends in every second wait. By then the peer
			// has read something, even if the end of the period causes the wake-up.
			before := written.Load()
			s.AdvanceClock(grace * 3 / 5)
			c.readBytes(1 << 20) // though another event may have woken it
			c.readUntil(func() bool { return written.Load() > before })
		}
		stop.Store(true)
		if _, err := io.Copy(io.Discard, c.r); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Errorf("the stream ended with %v", err)
		}
	})
	stop.Store(false)
	t.Run("too little", func(t *testing.T) {
		var shed admission.Shed
		h := newLineHandler()
		_, ended := stream(h)
		s := serve(t, engine.Config{WriteGrace: 20 * time.Millisecond, MinWriteRate: math.MaxInt32, Shed: &shed}, h)
		c := s.dial()
		c.send("stream\n")
		_, _ = io.Copy(io.Discard, c.r) // until it is cut off
		if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the stream ended with %v, want os.ErrDeadlineExceeded", err)
		}
		if n := shed.Count(admission.SlowReader); n != 1 {
			t.Errorf("%d counted, want 1", n)
		}
	})
}
