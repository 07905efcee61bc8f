package http2_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/http2"
)

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %s\nwant %s", what, strings.Join(got, " | "), strings.Join(want, " | "))
	}
}

func TestConversation(t *testing.T) {
	cl := dial(t, nil)
	same(t, "preface", cl.receive(), "settings 3=128 4=32768 6=16384 9=1", "0 window 983041")
	same(t, "hello", cl.send(opening))
	same(t, "acknowledged", cl.receive(), "settings ack")

	same(t, "request", cl.send(headers(1, endStream, get())), "1 GET / end")
	cl.answer(1, "hello")
	same(t, "answer", cl.receive(), "1 :status: 200, content-length: 5", `1 data "hello" end`)

	same(t, "upload", cl.send(headers(3, 0, post())+frame(tData, 0, 3, "ab")+frame(tData, endStream, 3, "cd")),
		"3 POST /", `3 data "ab"`, `3 data "cd" end`)
	cl.answer(3, "")
	same(t, "answer without a body", cl.receive(), "3 :status: 200, content-length: 0 end")

	same(t, "trailers", cl.send(headers(5, 0, post())+frame(tData, 0, 5, "ab")+headers(5, endStream, block("a: b"))),
		"5 POST /", `5 data "ab"`, "5 trailers a: b end")
	st := cl.streams[5]
	cl.conn.BeginHead(st, 103)
	cl.conn.Field("Link", "</a>")
	cl.conn.EndHead(false)
	if st.Answered() {
		t.Error("an interim head counts as the answer")
	}
	cl.conn.BeginHead(st, 200)
	cl.conn.EndHead(false)
	cl.conn.BeginTrailers(st)
	cl.conn.Field("Checksum", "1")
	cl.conn.EndTrailers()
	if cl.conn.BeginHead(st, 200) || cl.conn.BeginTrailers(st) || cl.conn.DataHeader(st, 0, true) {
		t.Error("data was accepted after the end of the answer")
	}
	cl.conn.Done(st)
	same(t, "interim and trailers", cl.receive(), "5 :status: 103, link: </a>", "5 :status: 200", "5 checksum: 1 end")

	same(t, "ping", cl.send(frame(tPing, 0, 0, "12345678")))
	same(t, "pong", cl.receive(), `ping 1 "12345678"`)
	same(t, "padding and priority", cl.send(headers(7, endStream|padded|withPriority, "\x03"+u32(1)+"\x10"+get()+"abc")), "7 GET / end")
	cl.answer(7, "")
	cl.receive()

	if !cl.conn.Idle() || cl.conn.Len() != 0 {
		t.Error("the connection is not idle at the end")
	}
	cl.send(frame(tGoAway, 0, 0, u32(0)+u32(0)+"bye"))
	if !cl.conn.GoingAway() || cl.err != nil {
		t.Errorf("GOAWAY of the client was not recorded: %v", cl.err)
	}
}

// Input has the same effect in one piece and byte by byte.
func TestEverySplit(t *testing.T) {
	in := opening + frame(tSettings, ack, 0, "") + headers(1, 0, post("content-length: 6")) + frame(tData, padded, 1, "\x02abc\x00\x00") +
		frame(tPing, 0, 0, "12345678") + frame(tData, endStream|padded, 1, "\x01def\x00") +
		frame(tHeaders, endStream, 3, get()[:20]) + frame(tContinuation, 0, 3, get()[20:30]) + frame(tContinuation, endHeaders, 3, get()[30:]) +
		headers(5, 0, post()) + frame(tData, endStream|padded, 5, "\x03\x00\x00\x00") + headers(7, 0, post()) + frame(tData, 0, 7, "") +
		frame(tWindow, 0, 7, u32(0)) + frame(0x77, 0, 9, "what?") + headers(2, endStream, get())
	join := func(events []string) string { // pieces of data are joined
		return strings.ReplaceAll(strings.ReplaceAll(strings.Join(events, "|"), `"|1 data "`, ""), `"|5 data "`, "")
	}
	whole := dial(t, nil)
	want := join(whole.send(in))
	sent := whole.receive()
	if !strings.Contains(want, `1 data "abcdef" end`) || whole.err == nil {
		t.Fatalf("got %s, error %v", want, whole.err)
	}
	for cut := range len(in) {
		cl := dial(t, nil)
		got := join(append(cl.send(in[:cut]), cl.send(in[cut:])...))
		if got != want || cl.err != whole.err {
			t.Fatalf("split at %d: got %s, error %v", cut, got, cl.err)
		}
		same(t, fmt.Sprint("frames after a split at ", cut), cl.receive(), sent...)
	}
	cl := dial(t, nil)
	var events []string
	for i := range len(in) {
		events = append(events, cl.send(in[i:i+1])...)
	}
	if got := join(events); got != want {
		t.Errorf("byte by byte: got %s", got)
	}
}

func TestDrain(t *testing.T) {
	cl := connect(t, nil)
	cl.send(headers(1, 0, post()))
	cl.conn.GoAway(false)
	same(t, "first GOAWAY", cl.receive(), "goaway 2147483647 NO_ERROR")
	same(t, "stream in flight", cl.send(headers(3, endStream, get())), "3 GET / end")
	cl.conn.GoAway(true)
	same(t, "second GOAWAY", cl.receive(), "goaway 3 NO_ERROR")
	// Later streams are ignored, and the tables of both sides and the windows stay consistent.
	late := headers(5, 0, strings.Replace(get("x-a: b"), "\x00\x03x-a", "\x40\x03x-a", 1)) + frame(tData, endStream, 5, "abc")
	same(t, "later stream", cl.send(late+frame(tData, endStream, 1, "a")), `1 data "a" end`)
	cl.answer(1, "")
	cl.answer(3, "")
	same(t, "answers", cl.receive(), "1 :status: 200, content-length: 0 end", "3 :status: 200, content-length: 0 end")
	if cl.err != nil || !cl.conn.Idle() {
		t.Errorf("got error %v, idle: %v", cl.err, cl.conn.Idle())
	}
}

// A stream counts towards the limit until its action has returned, no matter which side ended the stream.
func TestStreamLimit(t *testing.T) {
	cl := connect(t, func(l *http2.Limits) { l.MaxStreams = 2 })
	same(t, "two streams", cl.send(headers(1, endStream, get())+headers(3, endStream, get())), "1 GET / end", "3 GET / end")
	same(t, "a third stream", cl.send(headers(5, endStream, get())))
	same(t, "third stream refused", cl.receive(), "5 reset REFUSED_STREAM")
	same(t, "reset by the client", cl.send(frame(tReset, 0, 1, u32(8))), "1 over CANCEL")
	same(t, "reset because of a violation", cl.send(frame(tWindow, 0, 3, u32(0))), "3 over PROTOCOL_ERROR")
	cl.send(headers(7, endStream, get()))
	same(t, "both actions still run", cl.receive(), "3 reset PROTOCOL_ERROR", "7 reset REFUSED_STREAM")
	cl.conn.Done(cl.streams[1])
	same(t, "one action has returned", cl.send(headers(9, endStream, get())+headers(11, endStream, get())), "9 GET / end")
	cl.receive()
	cl.answer(3, "not sent")
	same(t, "no answer on a reset stream", cl.receive())
	same(t, "both actions have returned", cl.send(headers(13, endStream, get())), "13 GET / end")
}

// Frames that were in transit when the server reset a stream are ignored.
func TestFramesInTransitAfterReset(t *testing.T) {
	cl := connect(t, nil)
	cl.send(headers(1, 0, post()) + frame(tData, 0, 1, "a"))
	cl.conn.Reset(cl.streams[1], http2.NoError)
	cl.conn.Reset(cl.streams[1], http2.NoError)
	cl.conn.Done(cl.streams[1])
	same(t, "reset", cl.receive(), "1 reset NO_ERROR")
	same(t, "frames in flight", cl.send(frame(tData, 0, 1, "b")+frame(tWindow, 0, 1, u32(9))+headers(1, endStream, block("a: b"))+frame(tReset, 0, 1, u32(8))))
	same(t, "no response to these frames", cl.receive())
	if cl.err != nil || !cl.conn.Idle() {
		t.Error(cl.err, cl.conn.Idle())
	}
}

// A stream may be reset within a DATA frame.
func TestResetWithinAFrame(t *testing.T) {
	cl := connect(t, nil)
	in := headers(1, 0, post()) + frame(tData, endStream, 1, "abcdef")
	same(t, "first part of a frame", cl.send(in[:len(in)-3]), "1 POST /", `1 data "abc"`)
	cl.conn.Reset(cl.streams[1], http2.InternalError)
	cl.conn.Done(cl.streams[1])
	same(t, "rest of the frame", cl.send(in[len(in)-3:]+headers(3, endStream, get())), "3 GET / end")
}

func TestPrefaceIsRecognized(t *testing.T) {
	for _, c := range []struct {
		in         string
		yes, maybe bool
	}{
		{"", false, true}, {"P", false, true}, {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r", false, true}, {preface, true, true},
		{preface + "x", true, true}, {"POST / ", false, false}, {"PRI * HTTP/2.0\r\n\r\nSM\r\n\rx", false, false}, {"\x16\x03\x01", false, false},
	} {
		if yes, maybe := http2.HasPreface([]byte(c.in)); yes != c.yes || maybe != c.maybe {
			t.Errorf("%q: got %v, %v", c.in, yes, maybe)
		}
	}
}

func TestLongHeads(t *testing.T) {
	cl := connect(t, nil)
	cl.send(headers(1, endStream, get()))
	st := cl.streams[1]
	cl.conn.BeginHead(st, 200)
	for i := range 3 {
		cl.conn.Field(fmt.Sprint("X-Long-", i), strings.Repeat("\x01", 15_000)) // not shorter in Huffman code
	}
	cl.conn.EndHead(true)
	got := cl.receive()
	same(t, "parts", got[:2], "1 part of 16384 end", "1 part of 16384")
	if len(got) != 3 || len(got[2]) < 45_000 || !strings.HasPrefix(got[2], "1 :status: 200, x-long-0: ") {
		t.Errorf("got %d frames", len(got))
	}
}

func TestConnectionReleasesMemory(t *testing.T) {
	cl := connect(t, nil)
	cl.send(frame(tHeaders, endStream, 1, get()[:9]) + frame(tContinuation, endHeaders, 1, get()[9:]))
	cl.send(frame(tPriorityUpdate, 0, 0, u32(9)+"u=1"))
	cl.answer(1, "a")
	if cl.conn.Footprint() == 0 {
		t.Error("got a footprint of 0")
	}
	cl.conn.Rest()
	if n := cl.conn.Footprint(); n != 0 {
		t.Errorf("got a footprint of %d bytes", n)
	}
	same(t, "next request", cl.send(headers(3, endStream, get())), "3 GET / end")
}
