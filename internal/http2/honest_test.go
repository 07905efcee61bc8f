package http2_test

import (
	"strings"
	"testing"
)

// The frames of a gRPC client over a minute, on all streams and at the rate of a busy client, do not end a connection.
func TestGRPCClientsAreNotAttacks(t *testing.T) {
	const (
		millisecond = 1_000_000
		minute      = 60_000 * millisecond
		streams     = 100
		window      = 4 // frame type of WINDOW_UPDATE
	)
	ping := frame(tPing, 0, 0, "\x02\x04\x10\x10\x09\x0e\x07\x07") // sent to estimate the bandwidth
	message := strings.Repeat("m", 100)
	call := headers(0, 0, post("te: trailers", "content-type: application/grpc"))[9:]
	type busy struct {
		*client
		id uint32
	}
	i := 0
	begin := func(b *busy, end bool) (id uint32) {
		b.id += 2
		in := frame(tHeaders, endHeaders, b.id, call)
		if end {
			in += frame(tData, endStream, b.id, message)
		}
		b.send(in)
		if end && i%2 == 0 { // the other streams are answered before their bodies are read
			b.conn.Consumed(b.streams[b.id], len(message))
		}
		i++
		return b.id
	}
	answer := func(b *busy, id uint32) {
		b.conn.BeginHead(b.streams[id], 200)
		b.conn.EndHead(false)
	}
	tell := func(b *busy, id uint32, n int) { b.conn.Data(b.streams[id], make([]byte, n), false) }
	finish := func(b *busy, id uint32) {
		st := b.streams[id]
		if b.conn.BeginTrailers(st) {
			b.conn.Field("grpc-status", "0")
			b.conn.EndTrailers()
		}
		b.conn.Done(st)
	}
	cancel := func(b *busy, id uint32) {
		st := b.streams[id]
		b.send(frame(tReset, 0, id, u32(8)))
		b.conn.Done(st)
	}
	for _, c := range []struct {
		what  string
		every int64 // nanoseconds between two calls of do
		do    func(b *busy, i int)
	}{
		{"calls that exceed their deadlines, at the stream limit", 100 * millisecond, func(b *busy, _ int) {
			var open []uint32
			for range streams {
				open = append(open, begin(b, true))
			}
			b.conn.Now += 99 * millisecond
			for _, id := range open {
				cancel(b, id)
			}
		}},
		{"short calls, a third of them cancelled immediately", 5 * millisecond, func(b *busy, i int) {
			id := begin(b, true)
			if i%3 == 0 {
				cancel(b, id)
				return
			}
			answer(b, id)
			tell(b, id, 100)
			finish(b, id)
		}},
		{"streams that are cancelled after the first message", millisecond, func(b *busy, _ int) {
			id := begin(b, true)
			answer(b, id)
			tell(b, id, 100)
			b.send(ping)
			cancel(b, id)
		}},
		{"unary calls, with a PING and two WINDOW_UPDATEs for each answer", millisecond, func(b *busy, _ int) {
			id := begin(b, true)
			answer(b, id)
			tell(b, id, 1000)
			b.send(ping + frame(tWindow, 0, 0, u32(1000)) + frame(tWindow, 0, id, u32(1000)))
			finish(b, id)
		}},
		{"a stream of small messages, with two WINDOW_UPDATEs for each", millisecond, func(b *busy, i int) {
			if i == 0 {
				answer(b, begin(b, false))
			}
			tell(b, b.id, 100)
			b.send(frame(tWindow, 0, 0, u32(100)) + frame(tWindow, 0, b.id, u32(100)))
		}},
		{"large messages, with a PING and a WINDOW_UPDATE for each piece", millisecond, func(b *busy, i int) {
			if i == 0 {
				answer(b, begin(b, false))
			}
			tell(b, b.id, 16_000)
			b.send(ping + frame(tWindow, 0, 0, u32(16_000)) + frame(tWindow, 0, b.id, u32(16_000)))
		}},
		{"client messages, each with a PING", 5 * millisecond, func(b *busy, i int) {
			if i == 0 {
				answer(b, begin(b, false))
			}
			b.send(frame(tData, 0, b.id, message))
			b.conn.Consumed(b.streams[b.id], len(message))
			tell(b, b.id, 100)
			b.send(ping + frame(tWindow, 0, 0, u32(100)) + frame(tWindow, 0, b.id, u32(100)))
		}},
		{"windows that are adapted to the bandwidth", 1000 * millisecond, func(b *busy, i int) {
			n := uint32(65_535 + i*1000)
			b.send(frame(tSettings, 0, 0, setting(4, n)) + frame(tWindow, 0, 0, u32(1000)))
		}},
		{"keep-alive PINGs only", 10_000 * millisecond, func(b *busy, _ int) { b.send(ping) }},
	} {
		t.Run(c.what, func(t *testing.T) {
			b := &busy{connect(t, nil), 1}
			b.conn.Now = minute
			b.send(frame(tWindow, 0, 0, u32(1<<30)) + frame(tSettings, 0, 0, setting(4, 1<<29)))
			i := 0
			for now := b.conn.Now; now < 2*minute; now += c.every {
				b.conn.Now = now
				c.do(b, i)
				i++
				b.conn.Out = b.conn.Out[:0]
				if b.err != nil {
					t.Fatalf("after %v s: got error %v", float64(now-minute)/1e9, b.err)
				}
			}
			if n := b.conn.Len(); n > 1 {
				t.Errorf("got %d open streams", n)
			}
		})
	}
}
