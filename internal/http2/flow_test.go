package http2_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/http2"
)

// A window follows the reader: it stays closed while data is unread, and grows if data is read as it arrives.
func TestWindowFollowsConsumption(t *testing.T) {
	cl := connect(t, func(l *http2.Limits) {
		l.StreamWindow, l.MaxStreamWindow, l.ConnWindow = 10_000, 35_000, 1<<20
	})
	data := func(n int) string { return frame(tData, 0, 1, strings.Repeat("x", n)) }
	cl.send(headers(1, 0, post()) + data(6000))
	same(t, "no data read", cl.receive())
	st := cl.streams[1]
	if st.Unread() != 6000 {
		t.Errorf("unread: got %d", st.Unread())
	}
	cl.conn.Consumed(st, 3000)
	same(t, "some data read", cl.receive())
	cl.conn.Consumed(st, 2000)
	same(t, "half of the window read", cl.receive(), "1 window 5000")
	cl.send(data(9000))
	cl.conn.Consumed(st, 10_000)
	same(t, "all read, window doubled", cl.receive(), fmt.Sprintf("1 window %d", 10_000+10_000))
	cl.send(data(10_000))
	cl.conn.Consumed(st, 10_000)
	same(t, "all read again, window at the limit", cl.receive(), "1 window 25000")
	cl.conn.Tight = true
	cl.send(data(16_000) + data(4_000))
	cl.conn.Consumed(st, 20_000)
	same(t, "window stays at the limit", cl.receive(), "1 window 20000")
	cl.send(frame(tData, endStream, 1, strings.Repeat("x", 16_000)))
	cl.conn.Consumed(st, 16_000)
	same(t, "no WINDOW_UPDATE after the end", cl.receive())
}

func TestTightWindowsDoNotGrow(t *testing.T) {
	cl := connect(t, func(l *http2.Limits) { l.StreamWindow, l.MaxStreamWindow = 10_000, 40_000 })
	cl.conn.Tight = true
	cl.send(headers(1, 0, post()) + frame(tData, 0, 1, strings.Repeat("x", 9000)))
	cl.conn.Consumed(cl.streams[1], 9000)
	same(t, "same window", cl.receive(), "1 window 9000")
}

// The connection's window opens for data that is read, for padding, and for streams that end.
func TestConnectionWindow(t *testing.T) {
	cl := connect(t, func(l *http2.Limits) { l.StreamWindow, l.MaxStreamWindow, l.ConnWindow = 60_000, 60_000, 65_535 })
	chunk := strings.Repeat("x", 11_000)
	cl.send(headers(1, 0, post()) + headers(3, 0, post()) + strings.Repeat(frame(tData, 0, 1, chunk), 3))
	same(t, "no data read", cl.receive())
	cl.conn.Consumed(cl.streams[1], 11_000)
	same(t, "a third read", cl.receive())
	cl.conn.Reset(cl.streams[1], http2.Cancel)
	same(t, "rest dropped", cl.receive(), "1 reset CANCEL", "0 window 33000")
	cl.send(strings.Repeat(frame(tData, 0, 1, chunk), 3))
	same(t, "late DATA", cl.receive(), "0 window 33000")
	cl.send(strings.Repeat(frame(tData, padded, 3, "\xff"+strings.Repeat("\x00", 255)), 130))
	if got := strings.Join(cl.receive(), "|"); !strings.Contains(got, "3 window ") || !strings.Contains(got, "0 window ") {
		t.Errorf("padding was not returned to the windows: %s", got)
	}
	if cl.streams[3].Unread() != 0 {
		t.Error("padding counts as unread")
	}
}

// Unclaimed data keeps the window of its own stream closed, and not that of other streams.
func TestUnclaimedDataKeepsWindowClosed(t *testing.T) {
	cl := connect(t, func(l *http2.Limits) { l.StreamWindow, l.MaxStreamWindow, l.ConnWindow = 60_000, 60_000, 65_535 })
	cl.send(headers(1, 0, post()) + headers(3, 0, post()) + strings.Repeat(frame(tData, 0, 1, strings.Repeat("x", 11_000)), 3))
	same(t, "no data read", cl.receive())
	cl.conn.Unclaimed(cl.streams[1])
	same(t, "unclaimed data", cl.receive(), "0 window 33000")
	cl.conn.Unclaimed(cl.streams[1])
	cl.conn.Consumed(cl.streams[1], 30_000)
	same(t, "unclaimed data read", cl.receive(), "1 window 30000")
	cl.conn.Reset(cl.streams[1], http2.Cancel)
	cl.receive()
	cl.send(strings.Repeat(frame(tData, 0, 3, strings.Repeat("x", 11_000)), 3))
	same(t, "unclaimed data of an ended stream is returned once", cl.receive())
	cl.conn.Unclaimed(cl.streams[3])
	same(t, "other streams", cl.receive(), "0 window 33000")
}

// A body with reserved memory gets a wider window, even if memory is tight.
func TestRoomyWindowGrows(t *testing.T) {
	cl := connect(t, func(l *http2.Limits) { l.StreamWindow, l.MaxStreamWindow = 10_000, 100_000 })
	cl.conn.Tight, cl.conn.MostWindow = true, 15_000
	cl.send(headers(1, 0, post()) + frame(tData, 0, 1, strings.Repeat("x", 9000)))
	cl.conn.Consumed(cl.streams[1], 9000)
	same(t, "same window", cl.receive(), "1 window 9000")
	cl.streams[1].Roomy = true
	cl.send(frame(tData, 0, 1, strings.Repeat("x", 9000)))
	cl.conn.Consumed(cl.streams[1], 9000)
	same(t, "wider window", cl.receive(), "1 window 14000")
}

// Until the client acknowledges the server's settings it may use the initial window of the RFC.
func TestWindowBeforeSettingsAcknowledgement(t *testing.T) {
	cl := dial(t, func(l *http2.Limits) { l.StreamWindow, l.MaxStreamWindow = 10_000, 10_000 })
	chunk := frame(tData, 0, 1, strings.Repeat("x", 16_000))
	cl.send(opening + headers(1, 0, post()) + strings.Repeat(chunk, 4))
	if cl.err != nil {
		t.Fatal(cl.err)
	}
	cl.receive()
	cl.send(frame(tSettings, ack, 0, ""))
	cl.conn.Consumed(cl.streams[1], 64_000)
	// 65535 bytes were allowed and 64000 arrived; the new settings allow 55535 fewer, so the client may send 10000 now.
	same(t, "window after the acknowledgement", cl.receive(), fmt.Sprintf("1 window %d", 64_000))
	same(t, "window exceeded", cl.send(frame(tData, 0, 1, strings.Repeat("x", 10_001))), "1 over FLOW_CONTROL_ERROR")
}

// Output stays within both windows, which the client may change at any time.
func TestSending(t *testing.T) {
	cl := connect(t, nil)
	cl.send(headers(1, endStream, get()) + headers(3, endStream, get()))
	one, three := cl.streams[1], cl.streams[3]
	for _, st := range []*http2.Stream{one, three} {
		cl.conn.BeginHead(st, 200)
		cl.conn.EndHead(false)
	}
	cl.receive()
	if n := cl.conn.Room(one); n != 65535 {
		t.Errorf("got room for %d bytes", n)
	}
	cl.conn.Data(one, make([]byte, 40_000), false)
	same(t, "frames", cl.receive(), "1 data of 16384", "1 data of 16384", "1 data of 7232")
	if a, b := cl.conn.Room(one), cl.conn.Room(three); a != 25_535 || b != 25_535 {
		t.Errorf("got room for %d and %d bytes", a, b)
	}
	cl.send(frame(tSettings, 0, 0, setting(4, 30_000))) // stream one has exceeded its new window by 10,000
	cl.receive()
	if a, b := cl.conn.Room(one), cl.conn.Room(three); a != 0 || b != 25_535 {
		t.Errorf("got room for %d and %d bytes", a, b)
	}
	cl.conn.Want(one)
	cl.conn.Want(three)
	if st, n := cl.conn.NextSender(); st != three || n != 16<<10 {
		t.Errorf("got stream %v with %d bytes", st, n)
	}
	cl.conn.Data(three, make([]byte, 16<<10), false)
	if st, n := cl.conn.NextSender(); st != three || n != 25_535-16<<10 {
		t.Errorf("got stream %v with %d bytes", st, n)
	}
	cl.conn.Data(three, make([]byte, 25_535-16<<10), false)
	if st, _ := cl.conn.NextSender(); st != nil {
		t.Error("got a sender with an empty window")
	}
	cl.send(frame(tWindow, 0, 0, u32(100_000)) + frame(tWindow, 0, 1, u32(10_005)))
	cl.conn.Enough(three)
	cl.receive()
	if st, n := cl.conn.NextSender(); st != one || n != 5 {
		t.Errorf("got stream %v with %d bytes", st, n)
	}
	cl.conn.Data(one, make([]byte, 5), true) // ends the stream
	same(t, "last bytes", cl.receive(), `1 data "\x00\x00\x00\x00\x00" end`)
	if st, _ := cl.conn.NextSender(); st != nil {
		t.Error("got a sender without a waiting stream")
	}
	cl.conn.Data(three, nil, true)
	same(t, "empty DATA frame without a window", cl.receive(), `3 data "" end`)
}

// Unread data of bodies that have ended returns to the connection's window with their streams.
func TestUnreadBodiesRestoreConnectionWindow(t *testing.T) {
	cl := connect(t, nil)
	updates := 0
	for id := uint32(1); id < 400; id += 2 {
		cl.send(headers(id, 0, post()) + frame(tData, 0, id, strings.Repeat("x", 16_000)) + frame(tData, endStream, id, ""))
		cl.answer(id, "no")
		for _, f := range cl.receive() {
			if strings.HasPrefix(f, "0 window ") {
				updates++
			}
		}
		if cl.err != nil {
			t.Fatalf("stream %d: got error %v", id, cl.err)
		}
	}
	if updates == 0 {
		t.Error("got no WINDOW_UPDATE of the connection")
	}
}
