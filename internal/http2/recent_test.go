package http2_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/http2"
)

// answerEarly answers a stream before its body has arrived, and resets it, since the rest is not needed.
func (cl *client) answerEarly(id uint32) {
	cl.t.Helper()
	st := cl.streams[id]
	cl.answer(id, "")
	cl.conn.Reset(st, http2.NoError)
	cl.receive()
}

// Any number of streams may be reset at the same time: frames that the client sent before it received the resets cause no error.
func TestManySimultaneousResets(t *testing.T) {
	cl := connect(t, nil)
	const streams = 128
	id := func(i int) uint32 { return uint32(2*i + 1) }
	for i := range streams {
		cl.send(headers(id(i), 0, post()))
	}
	for i := range streams {
		cl.answerEarly(id(i))
	}
	for i := range streams {
		for range 20 { // costs no tokens, like data that is read
			cl.send(frame(tData, 0, id(i), strings.Repeat("x", 500)))
		}
		cl.send(headers(id(i), endStream, block("x-sum: 1")))
	}
	if frames := strings.Join(cl.receive(), "\n"); strings.Contains(frames, "reset") {
		t.Errorf("the streams were reset again:\n%s", frames)
	}
	if got := cl.send(headers(id(streams), endStream, get())); cl.err != nil || len(got) != 1 {
		t.Errorf("next request: got %q, error %v", got, cl.err)
	}
}

// For streams that were reset longer ago, the server does not know whether later frames were in transit: they are ignored, and
// cost tokens. The server does know the streams that the client closed itself or never opened.
func TestFramesOnForgottenStreams(t *testing.T) {
	const most = 4
	old := func(t *testing.T, rest bool) *client {
		cl := connect(t, func(l *http2.Limits) { l.MaxStreams = most })
		for id := uint32(1); id < 100; id += 2 {
			cl.send(headers(id, 0, post()))
			cl.answerEarly(id)
		}
		if rest {
			cl.conn.Rest()
			if n := cl.conn.Footprint(); n > 512 {
				t.Errorf("got a footprint of %d bytes", n)
			}
		}
		cl.send(headers(201, endStream, get()))
		cl.answer(201, "")
		cl.receive()
		return cl
	}
	for _, rest := range []bool{false, true} {
		for _, c := range []struct {
			what, sends string
			code        http2.Code
		}{
			{"trailers", headers(1, endStream, block("x-sum: 1")), http2.NoError},
			{"a body", frame(tData, endStream, 1, "body"), http2.NoError},
			{"HEADERS on an ended stream", headers(201, endStream, get()), http2.StreamClosed},
			{"HEADERS on a skipped stream", headers(151, endStream, get()), http2.ProtocolError},
		} {
			cl := old(t, rest)
			cl.send(c.sends)
			if c.code != http2.NoError {
				if got := cl.code(); got != c.code {
					t.Errorf("%s, rest %v: got %v, want %v", c.what, rest, got, c.code)
				}
				continue
			}
			if frames := cl.receive(); cl.err != nil || len(frames) > 0 {
				t.Errorf("%s, rest %v: got %q, error %v", c.what, rest, frames, cl.err)
			}
			cl.send(strings.Repeat(c.sends, 2500))
			var e http2.Error
			if !errors.As(cl.err, &e) || e.Reason() != http2.LateFrames {
				t.Errorf("repeated %s, rest %v: got %v, want ENHANCE_YOUR_CALM", c.what, rest, cl.err)
			}
		}
	}
}
