package http2_test

import (
	"testing"
	"unsafe"

	"github.com/dunlinhttp/dunlin/internal/http2"
)

// exchange serves the requests of in 32 times, including an upload, and returns the number of the last stream.
func exchange(t testing.TB, c *http2.Conn, in []byte, id uint32) uint32 {
	open := uint32(0)
	for range 32 {
		id += 2
		stamp(in, id)
		for at := 0; at < len(in); {
			n, ev, err := c.Next(in[at:])
			at += n
			if err != nil || ev.Kind == http2.NeedMore {
				t.Fatal(ev, err)
			}
			switch ev.Kind {
			case http2.RequestBegun:
				open++
			case http2.BodyData:
				c.Consumed(ev.Stream, len(ev.Data))
			}
			if ev.End {
				c.BeginHead(ev.Stream, 200)
				c.Field("Content-Type", "text/plain; charset=utf-8")
				c.ContentLength(13)
				c.Field("Date", "Mon, 21 Oct 2013 20:13:21 GMT")
				c.EndHead(false)
				c.Data(ev.Stream, []byte("Hello, World!"), true)
				c.Done(ev.Stream)
			}
		}
	}
	if _, _, err := c.Next(reopened); err != nil || open != 32 {
		t.Fatal(open, err)
	}
	c.Out = c.Out[:0]
	return id
}

// reopened restores the connection's window after 32 responses.
var reopened = []byte(frame(tWindow, 0, 0, u32(32*13)))

// stamp sets the stream number of all frames of in.
func stamp(in []byte, id uint32) {
	for at := 0; at < len(in); at += 9 + int(in[at])<<16 + int(in[at+1])<<8 + int(in[at+2]) {
		in[at+5], in[at+6], in[at+7], in[at+8] = byte(id>>24), byte(id>>16), byte(id>>8), byte(id)
	}
}

func opened(t testing.TB) *http2.Conn {
	lim := http2.DefaultLimits()
	c := new(http2.Conn)
	c.Init(&lim, new(http2.Pool), nil, 1)
	if _, _, err := c.Next([]byte(opening)); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAllocations(t *testing.T) {
	c := opened(t)
	in := []byte(headers(0, 0, post("content-length: 3", "x-name: value")) + frame(tData, endStream, 0, "abc"))
	id := uint32(1)
	for range 100 {
		id = exchange(t, c, in, id)
	}
	if n := testing.AllocsPerRun(100, func() { id = exchange(t, c, in, id) }); n != 0 {
		t.Errorf("got %v allocations in 32 requests", n)
	}
}

// An idle connection takes a few hundred bytes in addition to its tables.
func TestIdleConnectionMemory(t *testing.T) {
	const most = 768
	if n := unsafe.Sizeof(http2.Conn{}); n > most {
		t.Errorf("a Conn has %d bytes", n)
	}
	c := opened(t)
	in := []byte(headers(0, endStream, get()))
	exchange(t, c, in, 1)
	c.Rest()
	if n := c.Footprint(); n > 512 {
		t.Errorf("an idle connection retains %d more bytes", n)
	}
	if n := unsafe.Sizeof(http2.Stream{}); n > 128 {
		t.Errorf("a Stream has %d bytes", n)
	}
}

func BenchmarkExchange(b *testing.B) {
	for _, c := range []struct{ name, in string }{
		{"get", headers(0, endStream, get())},
		{"indexed", headers(0, endStream, "\x82\x86\x84\x01\x04abcd")},
		{"post", headers(0, 0, post("content-length: 3")) + frame(tData, endStream, 0, "abc")},
	} {
		b.Run(c.name, func(b *testing.B) {
			conn, in, id := opened(b), []byte(c.in), uint32(1)
			b.ReportAllocs()
			for n := 0; b.Loop(); n += 32 {
				if id > 1<<30 {
					conn, id = opened(b), 1
				}
				id = exchange(b, conn, in, id)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/32, "ns/request")
		})
	}
}
