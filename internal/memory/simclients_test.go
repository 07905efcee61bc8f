package memory

import "time"

// This file holds the behaviour of the simulated clients.

// small holds a little for a moment, again and again, like heads and small bodies that arrive in pieces.
func (c *simClient) small() {
	s := c.s
	n := 1 + s.rand.Int64N(64<<10)
	s.counts.small++
	if s.rand.IntN(2) == 0 {
		c.force(Input, n)
	} else {
		others := s.endable(c)
		if got := c.account().Reserve(Body, n); got != Granted {
			if others || got == MustWait {
				s.t.Errorf("a small request was not granted: %v", got)
			}
			c.over()
			c.after(100*time.Millisecond, c.small)
			return
		}
		c.uses[Body] += n
	}
	c.after(time.Duration(s.rand.Int64N(int64(30*time.Millisecond))), func() {
		c.over()
		c.after(time.Duration(s.rand.Int64N(int64(time.Second))), c.small)
	})
}

// upload sends a body of 4 MiB at 10 MB/s, which is read entirely.
func (c *simClient) upload() {
	c.s.counts.uploads++
	c.grow(0, 4<<20, 10<<20, func() {
		c.a.SetWorking(true)
		c.after(time.Duration(c.s.rand.Int64N(int64(20*time.Millisecond))), func() {
			c.over()
			c.after(time.Duration(c.s.rand.Int64N(int64(10*time.Second))), c.upload)
		})
	})
}

// grow reads a body of total bytes (unknown: -1) up to want, at a rate, and then calls then.
func (c *simClient) grow(have, want int64, rate float64, then func()) {
	s := c.s
	room := c.uses[Body]
	if have == room && have < want {
		more := min(max(64<<10, room), want-room)
		s.asking = c
		switch c.account().Reserve(Body, more) {
		case MustWait:
			c.waits()
			c.after(50*time.Millisecond, func() { c.grow(have, want, rate, then) })
			return
		case NoRoom:
			if c.kind == "upload" {
				s.counts.uploadsRefused++
			}
			again := c.upload
			c.over()
			if c.kind == "upload" {
				c.after(time.Second, again)
			}
			return
		}
		c.uses[Body] += more
	}
	if have >= want {
		then()
		return
	}
	n := min(c.uses[Body]-have, 64<<10)
	c.after(time.Duration(float64(n)/rate*1e9), func() {
		c.a.Progress(n, want-have-n)
		c.grow(have+n, want, rate, then)
	})
}

// slowBody sends the first part of a body quickly, and the rest at the given rate.
func (c *simClient) slowBody(first, total int64, rate float64) {
	c.grow(0, first, 10<<20, func() { c.drip(first, total, rate) })
}

func (c *simClient) drip(have, total int64, rate float64) {
	c.after(2*time.Second, func() {
		n := int64(rate * 2)
		left := int64(-1)
		if total > 0 {
			left = total - have - n
			if left <= 0 {
				first, _ := have, 0
				c.over()
				c.after(10*time.Millisecond, func() { c.slowBody(first, total, rate) }) // again
				return
			}
		}
		c.a.Progress(n, left)
		c.drip(have+n, total, rate)
	})
}

// download holds a response and reads it at a rate, in pieces of 128 KB as a socket does.
func (c *simClient) download(size int64, rate float64) {
	c.s.counts.downloads++
	c.force(Output, size)
	if c.a == nil || c.a.Evicted() {
		return
	}
	c.a.Progress(0, size)
	if rate > 0 {
		c.receive(size, size, rate)
	}
}

func (c *simClient) receive(size, left int64, rate float64) {
	n := min(left, 128<<10)
	c.after(time.Duration(float64(n)/rate*1e9), func() {
		c.free(Output, n)
		c.a.Progress(n, left-n)
		if left > n {
			c.receive(size, left-n, rate)
			return
		}
		c.over()
		c.after(time.Duration(c.s.rand.Int64N(int64(5*time.Second))), func() { c.download(size, rate) })
	})
}

// bursts reads nothing for a long time, and then much at once, so that it looks quick.
func (c *simClient) bursts() {
	const size = 2 << 20
	c.force(Output, size)
	if c.a == nil || c.a.Evicted() {
		return
	}
	c.burst(size)
}

func (c *simClient) burst(left int64) {
	c.after(9*time.Second, func() {
		n := min(left, 128<<10)
		c.free(Output, n)
		c.a.Progress(n, left-n)
		if left > n {
			c.burst(left - n)
			return
		}
		c.over()
		c.after(time.Millisecond, c.bursts)
	})
}

// neverReads leaves a response unread that was not expected to be large.
func (c *simClient) neverReads(n int64) {
	c.account().BeginResponse(n)
	c.force(Output, n)
	c.a.Progress(0, n)
}

// message sends messages one after the other, as WebSockets do: each is held until it is complete, and a connection that finds no room
// is closed. The client connects again.
func (c *simClient) message(have, size int64, rate float64) {
	s := c.s
	again := func() { c.message(0, size, rate) }
	if have == 0 {
		s.counts.messages++
	}
	if have == size {
		c.a.SetWorking(true)
		c.after(time.Duration(s.rand.Int64N(int64(5*time.Millisecond))), func() {
			c.a.SetWorking(false)
			c.free(Input, size)
			c.after(c.pause(0, rate), again)
		})
		return
	}
	const piece = 64 << 10
	s.asking = c
	if !c.account().TryReserve(Input, piece) {
		s.counts.messagesRefused++
		c.over()
		c.after(time.Second, again)
		return
	}
	c.uses[Input] += piece
	c.after(c.pause(piece, rate), func() {
		c.a.Progress(piece, size-have-piece)
		c.message(have+piece, size, rate)
	})
}

// slowHead holds a little for a long time.
func (c *simClient) slowHead(n int64) { c.force(Input, n) }

// echo sends a body and reads it back, at a rate between least and most, with occasional pauses, as on a busy machine.
func (c *simClient) echo(size int64, least, most float64) {
	s := c.s
	s.counts.echoes++
	rate := least + s.rand.Float64()*(most-least)
	again := func() {
		c.over()
		c.after(time.Duration(s.rand.Int64N(int64(time.Second))), func() { c.echo(size, least, most) })
	}
	refused := func() {
		s.counts.echoesRefused++
		again()
	}
	c.receiveWhole(0, size, rate, refused, func() {
		if !c.a.SetWorking(true) {
			refused()
			return
		}
		c.after(time.Duration(s.rand.Int64N(int64(5*time.Millisecond))), func() {
			s.asking, c.begun = c, true
			c.a.EndRequest()
			c.a.SetWorking(false)
			c.a.BeginResponse(size)
			c.force(Output, size)
			c.a.ReleaseReservation()
			c.takeWhole(size, rate, again)
		})
	})
}

// receiveWhole reads a body as requests are read: a small part without a reservation, and then with room for all of it.
func (c *simClient) receiveWhole(have, size int64, rate float64, refused, then func()) {
	s := c.s
	want := int64(16 << 10)
	if have >= want {
		want = size
	}
	s.asking = c
	switch c.account().reserveTo(want) {
	case MustWait:
		c.waits()
		c.after(50*time.Millisecond, func() { c.receiveWhole(have, size, rate, refused, then) })
		return
	case NoRoom:
		refused()
		return
	}
	if have >= size {
		then()
		return
	}
	n := min(want, 64<<10)
	n = min(n, size-have)
	c.after(c.pause(n, rate), func() {
		c.a.Progress(n, size-have-n)
		c.receiveWhole(have+n, size, rate, refused, then)
	})
}

// chunked sends bodies of unknown length one after the other, at a rate of its own. Each is read into memory that doubles. Its
// kind is "chunked" for all rates.
func (c *simClient) chunked(size, limit int64, rate float64) {
	c.s.counts.chunked++
	c.growChunked(0, size, limit, rate)
}

func (c *simClient) growChunked(have, size, limit int64, rate float64) {
	s := c.s
	again := func() {
		c.over()
		c.after(time.Duration(s.rand.Int64N(int64(time.Second))), func() { c.chunked(size, limit, rate) })
	}
	if room := c.uses[Body]; have == room {
		s.asking = c
		want := min(max(64<<10, 2*room), limit)
		switch c.account().Reserve(Body, want-room) {
		case MustWait:
			if c.a.Held()+want-room <= Small {
				s.t.Errorf("a body waits that would hold %d", c.a.Held()+want-room)
			}
			c.waits()
			c.after(50*time.Millisecond, func() { c.growChunked(have, size, limit, rate) })
			return
		case NoRoom:
			s.counts.chunkedRefused++
			again()
			return
		}
		c.uses[Body] = want
	}
	if have >= size {
		if !c.a.SetWorking(true) {
			s.counts.chunkedRefused++
			again()
			return
		}
		c.after(time.Duration(s.rand.Int64N(int64(20*time.Millisecond))), again)
		return
	}
	n := min(c.uses[Body]-have, size-have, 64<<10)
	c.after(c.pause(n, rate), func() {
		c.a.Progress(n, -1)
		c.growChunked(have+n, size, limit, rate)
	})
}

// takeWhole reads a response that is held until its last byte is read.
func (c *simClient) takeWhole(left int64, rate float64, then func()) {
	n := min(left, 64<<10)
	c.after(c.pause(n, rate), func() {
		c.a.Progress(n, left-n)
		if left > n {
			c.takeWhole(left-n, rate, then)
			return
		}
		c.a.EndResponse()
		then()
	})
}

// pause returns the time that n bytes take.
func (c *simClient) pause(n int64, rate float64) time.Duration {
	d := time.Duration(float64(n) / rate * 1e9)
	if c.s.rand.IntN(20) == 0 {
		d += time.Duration(c.s.rand.Int64N(int64(300 * time.Millisecond)))
	}
	return d
}
