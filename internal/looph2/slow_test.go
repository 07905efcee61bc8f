package looph2_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// read reads a frame, and returns its type, flags, stream and length.
func (c *h2Conn) read() (kind, flags byte, stream, length uint32) {
	c.t.Helper()
	var head [9]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		c.t.Fatal(err)
	}
	length = binary.BigEndian.Uint32(head[:4]) >> 8
	if _, err := io.CopyN(io.Discard, c, int64(length)); err != nil {
		c.t.Fatal(err)
	}
	return head[3], head[4], binary.BigEndian.Uint32(head[5:]), length
}

// window sets the initial window of streams.
func (c *h2Conn) window(size uint32) {
	_ = c.frame(frameSettings, 0, 0, binary.BigEndian.AppendUint32([]byte{0, 4}, size)...)
}

// A client that reads nothing loses all pending answers after one timeout, although many of its requests wait for its other
// streams.
func TestStalledClientLosesAllAnswers(t *testing.T) {
	onBoth(t, func(t *testing.T, engine dunlin.Engine) {
		text := bytes.Repeat([]byte("x"), 1<<20)
		var begun, running atomic.Int64
		write := func(w io.Writer) error {
			running.Add(1)
			defer running.Add(-1)
			_, err := w.Write(text)
			return err
		}
		s := startH2(t, dunlin.Config{Engine: engine, Timeouts: dunlin.Timeouts{Write: 300 * time.Millisecond}}, func(app *dunlin.App) {
			app.Get("/whole", func(*dunlin.Request) dunlin.Response { begun.Add(1); return dunlin.Bytes("", bytes.Clone(text)) })
			app.Get("/stream", func(*dunlin.Request) dunlin.Response { return dunlin.Stream("", write) })
			app.Mount("/std", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _ = write(w) }))
		})
		const all = 100
		for _, window := range []uint32{0, 4096} {
			for _, path := range []string{"/whole", "/stream", "/std"} {
				begun.Store(0)
				c := newH2Conn(t, s.addr)
				c.window(window)
				for i := range uint32(all) {
					c.request(2*i+1, true, "GET", path)
				}
				for reset := 0; reset < all; {
					if kind, _, _, _ := c.read(); kind == frameReset {
						reset++
					}
				}
				soon(t, path+" has no running action", func() bool { return running.Load() == 0 && s.app.Stats().Actions.InFlight == 0 })
				// Requests that wait for others are cut together with them: if each waited for a time of its own, all would
				// have begun.
				if n := begun.Load(); engine == dunlin.EngineLoop && n > all/2 {
					t.Errorf("window %d: got %d answers of %d were made for a stalled client", window, n, all)
				}
			}
		}
		if n := s.app.Stats().Shed["slow-reader"]; n != 6*all {
			t.Errorf("got %d counted, want %d", n, 6*all)
		}
	})
}

// A stream that waits only because others use the connection's window is not slow.
func TestStreamWaitingForConnectionWindowIsKept(t *testing.T) {
	onBoth(t, func(t *testing.T, engine dunlin.Engine) {
		const timeout, size = 500 * time.Millisecond, 40 << 10
		s := startH2(t, dunlin.Config{Engine: engine, Timeouts: dunlin.Timeouts{Write: timeout}}, func(app *dunlin.App) {
			app.Get("/endless", func(*dunlin.Request) dunlin.Response {
				return dunlin.Stream("", func(w io.Writer) error {
					for {
						if _, err := w.Write(make([]byte, 16<<10)); err != nil {
							return err
						}
					}
				})
			})
			app.Get("/waits", func(*dunlin.Request) dunlin.Response { return dunlin.Bytes("", make([]byte, size)) })
		})
		c := newH2Conn(t, s.addr)
		c.window(1 << 30)
		c.request(1, true, "GET", "/endless")
		for left := 65535; left > 0; {
			if kind, _, _, n := c.read(); kind == frameData {
				left -= int(n)
			}
		}
		c.request(3, true, "GET", "/waits")
		got, ended := 0, false
		open := func(n uint32) { _ = c.frame(8, 0, 0, binary.BigEndian.AppendUint32(nil, n)...) }
		for began := time.Now(); time.Since(began) < 3*timeout; {
			open(1000)
			for taken := uint32(0); taken < 1000; {
				switch kind, flags, stream, n := c.read(); {
				case kind == frameReset:
					t.Fatalf("stream %d was reset", stream)
				case kind == frameData:
					taken += n
					if stream == 3 {
						got += int(n)
						ended = flags&1 != 0
					}
				}
			}
		}
		_ = c.frame(frameReset, 0, 1, 0, 0, 0, 8)
		for open(1 << 30); !ended; {
			if kind, flags, stream, n := c.read(); stream == 3 && kind == frameData {
				got += int(n)
				ended = flags&1 != 0
			}
		}
		if got != size {
			t.Errorf("%d of %d bytes", got, size)
		}
	})
}

// Only the window of the connection is small, and the client reads everything that it allows. Each stream gets little.
// Neither the answers that it receives nor those that are not made yet are cut.
func TestSmallConnectionWindowKeepsStreams(t *testing.T) {
	onBoth(t, func(t *testing.T, engine dunlin.Engine) {
		const timeout, size, all, piece = 500 * time.Millisecond, 1 << 20, 60, 200
		s := startH2(t, dunlin.Config{Engine: engine, Timeouts: dunlin.Timeouts{Write: timeout}}, func(app *dunlin.App) {
			app.Get("/whole", func(*dunlin.Request) dunlin.Response { return dunlin.Bytes("", make([]byte, size)) })
		})
		c := newH2Conn(t, s.addr)
		c.window(2 * size)
		for i := range uint32(all) {
			c.request(2*i+1, true, "GET", "/whole")
		}
		for left := 65535; left > 0; {
			if kind, _, _, n := c.read(); kind == frameData {
				left -= int(n)
			}
		}
		takes := time.NewTicker(timeout / 100) // in a timeout 333 bytes of each; the minimum is 128 of all
		defer takes.Stop()
		for began := time.Now(); time.Since(began) < 4*timeout; <-takes.C {
			_ = c.frame(8, 0, 0, binary.BigEndian.AppendUint32(nil, piece)...)
			for taken := uint32(0); taken < piece; {
				switch kind, _, stream, n := c.read(); kind {
				case frameReset:
					t.Fatalf("stream %d was reset after %v", stream, time.Since(began))
				case frameData:
					taken += n
				}
			}
		}
	})
}

// A stream that its client does not read is reset, and the other streams of the connection continue.
func TestStalledStreamIsReset(t *testing.T) {
	onBoth(t, func(t *testing.T, engine dunlin.Engine) {
		s := startH2(t, dunlin.Config{Engine: engine, Timeouts: dunlin.Timeouts{Write: 300 * time.Millisecond}}, func(app *dunlin.App) {
			app.Get("/endless", func(*dunlin.Request) dunlin.Response {
				return dunlin.Stream("", func(w io.Writer) error {
					for {
						if _, err := w.Write(make([]byte, 16<<10)); err != nil {
							return err
						}
					}
				})
			})
		})
		c := newH2Conn(t, s.addr)
		c.window(1000)
		open := func(stream, n uint32) { _ = c.frame(8, 0, stream, binary.BigEndian.AppendUint32(nil, n)...) }
		open(0, 1<<30)
		c.request(1, true, "GET", "/endless")
		c.request(3, true, "GET", "/endless")
		open(3, 100_000)
		for cut, after := false, 0; !cut || after < 1<<20; {
			switch kind, _, stream, n := c.read(); {
			case kind == frameReset && stream == 1:
				cut = true
			case kind == frameReset:
				t.Fatalf("stream %d was reset", stream)
			case kind == frameData && stream == 3:
				open(3, n)
				if cut {
					after += int(n)
				}
			}
		}
	})
}

// An unread answer is not cut off while the client reads other answers completely.
func TestStalledStreamRemainsWhileOthersProgress(t *testing.T) {
	onLoop(t)
	const timeout, size, piece = 600 * time.Millisecond, 400 << 10, 2000
	s := startH2(t, dunlin.Config{Engine: dunlin.EngineLoop, Timeouts: dunlin.Timeouts{Write: timeout}}, func(app *dunlin.App) {
		app.Get("/whole", func(*dunlin.Request) dunlin.Response { return dunlin.Bytes("", make([]byte, size)) })
		app.Get("/left", func(*dunlin.Request) dunlin.Response { return dunlin.Bytes("", make([]byte, 4*size)) })
	})
	c := newH2Conn(t, s.addr)
	c.window(size)
	open := func(n uint32) { _ = c.frame(8, 0, 0, binary.BigEndian.AppendUint32(nil, n)...) }
	open(2*size - 65535)
	c.request(1, true, "GET", "/left")
	asked := uint32(1)
	ask := func() { asked += 2; c.request(asked, true, "GET", "/whole") }
	for taken := uint32(0); taken < size; {
		if kind, _, _, n := c.read(); kind == frameData {
			taken += n
		}
	}
	for range 60 {
		ask()
	}
	waits := size // unused bytes of the connection's window
	until := time.Now().Add(10 * timeout)
	for left := false; time.Now().Before(until); {
		switch kind, flags, stream, n := c.read(); {
		case kind == frameReset && stream == 1 && !left:
			left, until = true, time.Now().Add(timeout/2)
		case kind == frameReset:
			t.Fatalf("stream %d was reset", stream)
		case kind == frameData:
			if waits -= int(n); waits <= 0 {
				open(piece)
				waits += piece
			}
			if flags&1 != 0 {
				ask()
			}
		}
	}
}
