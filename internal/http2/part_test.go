package http2_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/http2"
)

const answered = `ping 0 "answered"`

var pong = frame(tPing, ack, 0, "answered")

// early sends a request whose body has not ended, and its complete response.
func (cl *client) early(id uint32) {
	cl.t.Helper()
	cl.send(headers(id, 0, post("content-length: 100")) + frame(tData, 0, id, "some"))
	cl.answer(id, "no")
	cl.conn.Part(cl.streams[id])
}

// A client that gets its answer before it has sent the whole body is told to stop after it has read the answer.
func TestPart(t *testing.T) {
	cl := connect(t, nil)
	cl.early(1)
	cl.conn.Part(cl.streams[1])
	same(t, "early answer", cl.receive(), "1 :status: 200, content-length: 2", `1 data "no" end`, answered)
	if cl.conn.Len() != 0 {
		t.Error("the stream still counts")
	}
	same(t, "frames in flight", cl.send(frame(tData, 0, 1, "more")+frame(tPing, ack, 0, "anything")))
	same(t, "no reset yet", cl.receive())
	same(t, "PING acknowledged", cl.send(pong))
	same(t, "reset after the acknowledgement", cl.receive(), "1 reset NO_ERROR")
	same(t, "frames in flight after the reset", cl.send(frame(tData, endStream, 1, "more")+pong))
	same(t, "only one reset", cl.receive())
	if cl.err != nil {
		t.Error(cl.err)
	}
}

// One PING covers all streams that were answered before it; there is one PING at a time.
func TestResetsShareOnePing(t *testing.T) {
	cl := connect(t, nil)
	cl.early(1)
	cl.receive()
	cl.early(3)
	cl.early(5)
	for _, f := range cl.receive() {
		if f == answered {
			t.Error("got a second PING while the first is in flight")
		}
	}
	cl.send(pong)
	same(t, "first stream", cl.receive(), "1 reset NO_ERROR", answered)
	cl.send(pong)
	same(t, "other streams", cl.receive(), "3 reset NO_ERROR", "5 reset NO_ERROR")
}

// A client that ends its stream itself gets no reset.
func TestNoResetOfEndedStream(t *testing.T) {
	for what, end := range map[string]func(id uint32) string{
		"END_STREAM": func(id uint32) string { return frame(tData, endStream, id, "more") },
		"trailers":   func(id uint32) string { return headers(id, endStream, block("x-a: b")) },
		"RST_STREAM": func(id uint32) string { return frame(tReset, 0, id, u32(8)) },
	} {
		cl := connect(t, nil)
		for id := uint32(1); id < 101; id += 2 {
			cl.early(id)
			cl.receive()
			cl.send(end(id) + pong)
			if got := cl.receive(); len(got) > 0 || cl.err != nil {
				t.Fatalf("%s: after %d streams: got %q, error %v", what, id/2, got, cl.err)
			}
		}
	}
}

// If the client does not acknowledge the PING, its stream is reset after a time limit, and so are streams that were answered
// before the limit.
func TestResetWithoutPingAcknowledgement(t *testing.T) {
	cl := connect(t, nil)
	cl.conn.Now = 1e9
	cl.early(1)
	cl.receive()
	by := cl.conn.PartBy()
	if by <= cl.conn.Now {
		t.Fatalf("got deadline %d", by)
	}
	cl.conn.Now = by - 1
	cl.early(3)
	cl.receive()
	cl.conn.PartLate()
	same(t, "before", cl.receive())
	cl.conn.Now = by
	cl.conn.PartLate()
	same(t, "first stream", cl.receive(), "1 reset NO_ERROR", answered)
	if cl.conn.PartBy() <= by {
		t.Error("got no deadline for the second stream")
	}
	cl.send(pong)
	same(t, "acknowledgement of the first PING", cl.receive())
	cl.send(pong)
	same(t, "second stream", cl.receive(), "3 reset NO_ERROR")
	cl.conn.PartLate()
	same(t, "no more frames", cl.receive())
	if n := cl.conn.PartBy(); n != 0 || cl.err != nil {
		t.Errorf("got deadline %d (error %v), want none", n, cl.err)
	}
}

// If the client does not acknowledge, the oldest streams are reset when the list is full.
func TestPartUnacknowledged(t *testing.T) {
	cl := connect(t, func(l *http2.Limits) { l.MaxStreams = 8 })
	var want []string
	for i := range uint32(20) {
		cl.early(2*i + 1)
		if i < 4 {
			want = append(want, fmt.Sprintf("%d reset NO_ERROR", 2*i+1))
		}
	}
	var got []string
	pings := 0
	for _, f := range cl.receive() {
		switch {
		case strings.Contains(f, " reset "):
			got = append(got, f)
		case f == answered:
			pings++
		}
	}
	same(t, "oldest four of twenty streams", got, want...)
	if pings != 1 {
		t.Errorf("got %d PINGs", pings)
	}
}

// The reset of a forgotten stream is sent between the frames of other streams, not within one.
func TestResetOfForgottenStreamBetweenAnswers(t *testing.T) {
	for _, body := range []string{"", "a body", strings.Repeat("x", 40_000)} {
		cl := connect(t, func(l *http2.Limits) { l.MaxStreams = 2 })
		resets := 0
		for id := uint32(1); id < 41; id += 4 {
			cl.early(id)
			cl.send(headers(id+2, endStream, get()))
			cl.answer(id+2, body)
			ended := false
			for _, f := range cl.receive() {
				switch {
				case strings.HasSuffix(f, " reset NO_ERROR"):
					resets++
				case strings.HasPrefix(f, fmt.Sprintf("%d ", id+2)):
					ended = ended || strings.HasSuffix(f, " end")
				case f != answered && !strings.HasPrefix(f, fmt.Sprintf("%d ", id)):
					t.Errorf("stream %d: got %q", id, f)
				}
			}
			if !ended {
				t.Errorf("stream %d: got no END_STREAM", id+2)
			}
			cl.send(frame(tWindow, 0, 0, u32(40_000)))
		}
		if resets != 10-2*2 || cl.err != nil {
			t.Errorf("body of %d bytes: got %d resets, error %v", len(body), resets, cl.err)
		}
	}
}

// Unsolicited acknowledgements of PINGs cost tokens, as other PINGs do.
func TestUnsolicitedPongsCostTokens(t *testing.T) {
	cl := connect(t, nil)
	for range 100_000 {
		if cl.send(pong); cl.err != nil {
			break
		}
	}
	var e http2.Error
	if !errors.As(cl.err, &e) || e.Reason() != http2.Pings {
		t.Errorf("got error %v", cl.err)
	}
}

// A stream that its client resets is closed for the client, even if the server has already ended it: a head on it is an
// error (RFC 9113 section 5.1).
func TestHeadersAfterClientReset(t *testing.T) {
	for what, begin := range map[string]func(cl *client){
		"answered early":             func(cl *client) { cl.early(1) },
		"reset by the server":        func(cl *client) { cl.send(headers(1, 0, post())); cl.conn.Reset(cl.streams[1], http2.NoError) },
		"answered early, then reset": func(cl *client) { cl.early(1); cl.send(pong) },
		"while its action runs":      func(cl *client) { cl.send(headers(1, endStream, get())) },
	} {
		cl := connect(t, nil)
		begin(cl)
		cl.send(frame(tReset, 0, 1, u32(8)))
		if cl.err != nil {
			t.Fatalf("%s: got error %v", what, cl.err)
		}
		cl.send(headers(1, endStream, get()))
		if got := cl.code(); got != http2.StreamClosed {
			t.Errorf("%s: got %v, want STREAM_CLOSED", what, got)
		}
	}
}
