package http2_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/http2"
)

// attacks are abuses that a client may repeat forever. Each ends the connection, with its reason.
var attacks = []struct {
	reason http2.Reason
	frames func(id uint32) string // frames of one round; id is the number of a new stream
}{
	{http2.Resets, func(id uint32) string { return headers(id, endStream, get()) + frame(tReset, 0, id, u32(8)) }},
	{http2.Faults, func(id uint32) string { return headers(id, 0, post()) + frame(tWindow, 0, id, u32(0)) }},
	{http2.Faults, func(id uint32) string { return headers(id, endStream, get()) + frame(tData, 0, id, "a") }},
	{http2.Faults, func(id uint32) string { return headers(id, 0, post()) + frame(tPriority, 0, id, "abc") }},
	{http2.Faults, func(id uint32) string { return headers(id, endStream, get("X: y")) }},
	{http2.Faults, func(id uint32) string { return headers(id, 0, post()) + frame(tWindow, 0, id, u32(1<<31-1)) }},
	{http2.Refusals, func(id uint32) string { return headers(id, 0, post()) }},
	{http2.Continuations, func(id uint32) string { return strings.Repeat(frame(tContinuation, 0, 1<<30+1, "\x10"), 10) }},
	{http2.Pings, func(uint32) string { return frame(tPing, 0, 0, "12345678") }},
	{http2.Pings, func(uint32) string { return frame(tPing, ack, 0, "12345678") }},
	{http2.SettingsFrames, func(uint32) string { return frame(tSettings, 0, 0, setting(4, 1)+setting(4, 70_000)) }},
	{http2.SettingsFrames, func(uint32) string { return frame(tSettings, ack, 0, "") }},
	{http2.SettingsFrames, func(uint32) string { return frame(tSettings, 0, 0, strings.Repeat(setting(4, 1), 2730)) }},
	{http2.SettingsFrames, func(uint32) string { return frame(tGoAway, 0, 0, "12345678") }},
	{http2.EmptyData, func(uint32) string { return frame(tData, 0, 1, "") }},
	{http2.EmptyData, func(uint32) string { return frame(tData, padded, 1, "\x01\x00") }},
	{http2.WindowUpdates, func(uint32) string { return frame(tWindow, 0, 0, u32(1)) }},
	{http2.WindowUpdates, func(uint32) string { return frame(tWindow, 0, 1, u32(1)) }},
	{http2.Priorities, func(uint32) string { return frame(tPriority, 0, 1, "12345") }},
	{http2.Priorities, func(id uint32) string { return frame(tPriorityUpdate, 0, 0, u32(id)+"u=1") }},
	{http2.Unknown, func(uint32) string { return frame(0x42, 0, 1, "abc") }},
	{http2.LateFrames, func(uint32) string { return frame(tReset, 0, 3, u32(8)) }},
}

func TestAttacks(t *testing.T) {
	for _, a := range attacks {
		t.Run(a.reason.String(), func(t *testing.T) {
			cl := connect(t, nil)
			cl.send(headers(1, 0, post()) + headers(3, endStream, get()))
			cl.answer(3, "")
			if a.reason == http2.Continuations {
				cl.send(frame(tHeaders, 0, 1<<30+1, "\x00"))
			}
			rounds := 0
			for id := uint32(5); cl.err == nil; id += 2 {
				if rounds++; rounds > 2500 {
					t.Fatal("the connection did not end")
				}
				cl.send(a.frames(id))
				if st := cl.streams[id]; st != nil && a.reason != http2.Refusals {
					cl.conn.Done(st) // the action has returned immediately
				}
				cl.receive()
				if cl.conn.Len() > 128 {
					t.Fatalf("got %d open streams", cl.conn.Len())
				}
			}
			var e http2.Error
			if !errors.As(cl.err, &e) || e.Code() != http2.EnhanceYourCalm || e.Reason() != a.reason {
				t.Errorf("got error %v, reason %v", cl.err, e.Reason())
			}
			if n := cl.conn.Footprint(); n > 8<<10 {
				t.Errorf("got a footprint of %d bytes", n)
			}
		})
	}
}

// Useful requests pay for their overhead: clients may open windows for the responses that they read, cancel some requests, and
// ping while data arrives.
func TestOrdinaryClientsAreNotAttacks(t *testing.T) {
	cl := connect(t, nil)
	for id := uint32(1); id < 20_000; id += 2 {
		cl.send(headers(id, endStream, get()))
		st := cl.streams[id]
		cl.conn.BeginHead(st, 200)
		cl.conn.EndHead(false)
		cl.conn.Data(st, make([]byte, 16_000), false)
		cl.send(strings.Repeat(frame(tWindow, 0, 0, u32(4000))+frame(tWindow, 0, id, u32(4000)), 4) + frame(tPing, 0, 0, "12345678"))
		if id%16 == 1 {
			cl.send(frame(tReset, 0, id, u32(8)))
		} else {
			cl.conn.Data(st, nil, true)
		}
		cl.conn.Done(st)
		cl.conn.Out = cl.conn.Out[:0] // all responses have the same fields, so the decoder's table is complete
		if cl.err != nil {
			t.Fatalf("stream %d: got %v", id, cl.err)
		}
	}
}

// Data that was in transit when the stream was reset is not an attack, regardless of its frames. Data beyond the client's
// windows is.
func TestDataInTransitAfterReset(t *testing.T) {
	const window = 16_000
	for _, c := range []struct {
		what     string
		begin    func(cl *client)
		underWay int
	}{
		{"stream was reset", func(cl *client) {
			cl.send(headers(3, 0, post()) + frame(tData, 0, 3, strings.Repeat("x", 4000)))
			cl.conn.Reset(cl.streams[3], http2.NoError)
		}, window - 4000},
		{"stream was reset after its window was opened again", func(cl *client) {
			cl.send(headers(3, 0, post()) + frame(tData, 0, 3, strings.Repeat("x", window)))
			cl.conn.Consumed(cl.streams[3], window)
			cl.conn.Reset(cl.streams[3], http2.NoError)
		}, window},
		{"malformed request", func(cl *client) { cl.send(headers(3, 0, post("X: y"))) }, window},
		{"body has ended", func(cl *client) {
			cl.send(headers(3, endStream, post()))
			cl.conn.Reset(cl.streams[3], http2.NoError)
		}, 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			cl := connect(t, func(l *http2.Limits) { l.StreamWindow, l.MaxStreamWindow = window, window })
			cl.send(headers(1, 0, post()))
			c.begin(cl)
			cl.send(strings.Repeat(frame(tData, 0, 3, "x"), c.underWay))
			if cl.err != nil {
				t.Fatalf("within the window: got %v", cl.err)
			}
			if got := cl.send(frame(tData, 0, 1, "other")); len(got) != 1 || got[0] != `1 data "other"` {
				t.Errorf("another stream: got %q", got)
			}
			cl.send(strings.Repeat(frame(tData, 0, 3, "x"), 2500))
			var e http2.Error
			if !errors.As(cl.err, &e) || e.Reason() != http2.LateFrames {
				t.Errorf("beyond the window: got error %v, want ENHANCE_YOUR_CALM", cl.err)
			}
		})
	}
}

// Tokens refill with time.
func TestTokensRefill(t *testing.T) {
	cl := connect(t, nil)
	for range 20 {
		cl.send(strings.Repeat(frame(tPing, 0, 0, "12345678"), 90))
		cl.receive()
		cl.conn.Now += 1_000_000_000
	}
	if cl.err != nil {
		t.Error(cl.err)
	}
}

// A call of Next stops after a few frames that serve no request, so that other connections get a turn.
func TestNextReadsFewCostlyFrames(t *testing.T) {
	cl := connect(t, nil)
	in := []byte(strings.Repeat(frame(tPing, 0, 0, "12345678"), 500))
	for read := 0; len(in) > 0; {
		n, ev, err := cl.conn.Next(in)
		if err != nil || n > 33*17 || ev.Kind != http2.Costly && n < len(in) {
			t.Fatalf("after %d requests: got %d bytes, event %v, error %v", n, read, ev.Kind, err)
		}
		in, read = in[n:], read+n
	}
	if got := len(cl.receive()); got != 500 {
		t.Errorf("got %d answers", got)
	}
}

// A distrusted client is disconnected earlier, and gets as many tokens as other clients after it has sent useful requests.
func TestDistrust(t *testing.T) {
	pings := func(prepare func(cl *client)) (n int) {
		cl := connect(t, nil)
		prepare(cl)
		for cl.err == nil {
			cl.send(frame(tPing, 0, 0, "12345678"))
			n++
		}
		return n
	}
	all := pings(func(*client) {})
	if n := pings(func(cl *client) { cl.conn.Distrust() }); n < all/8 || n > all/3 {
		t.Errorf("got an error after %d of %d PINGs", n, all)
	}
	served := pings(func(cl *client) {
		cl.conn.Distrust()
		for id := uint32(1); id < 1000; id += 2 {
			cl.send(headers(id, endStream, get()))
			cl.answer(id, "")
			cl.receive()
		}
	})
	if served != all {
		t.Errorf("after 500 requests: got an error after %d of %d PINGs", served, all)
	}
}

// Field blocks that are too large, or expand too much, have a reason of their own.
func TestFieldBlocksAreCounted(t *testing.T) {
	bomb := "\x40\x04bomb" + string(appendLength(nil, 4000)) + strings.Repeat("x", 4000) + strings.Repeat("\xbe", 12_000)
	for what, in := range map[string]string{
		"HPACK bomb":  headers(1, endStream, get()+bomb),
		"too large":   frame(tHeaders, endStream, 1, get()) + strings.Repeat(frame(tContinuation, 0, 1, strings.Repeat("\x00\x01x\x01y", 3200)), 5),
		"other error": frame(tPush, 0, 1, "abcd"),
	} {
		cl := connect(t, nil)
		cl.send(in)
		var e http2.Error
		if want := what != "other error"; !errors.As(cl.err, &e) || e.Reason() == http2.Blocks != want {
			t.Errorf("%s: got error %v, reason %d", what, cl.err, e.Reason())
		}
	}
}

// A client whose calls have short deadlines is served; a client that resets its streams at once is not.
func TestDeadlinesAreNotAttacks(t *testing.T) {
	for _, c := range []struct {
		age    int64
		attack bool
	}{{0, true}, {4_000_000, true}, {5_000_000, false}, {20_000_000, false}} {
		cl := connect(t, nil)
		for id := uint32(1); id < 4000 && cl.err == nil; id += 2 {
			cl.send(headers(id, endStream, get()))
			cl.conn.Now += c.age
			cl.send(frame(tReset, 0, id, u32(8)))
			cl.conn.Done(cl.streams[id])
			cl.receive()
		}
		var e http2.Error
		if attack := errors.As(cl.err, &e) && e.Reason() == http2.Resets; attack != c.attack {
			t.Errorf("resets after %d ns: got error %v, want an attack: %v", c.age, cl.err, c.attack)
		}
	}
}
