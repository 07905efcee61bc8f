package http2_test

import (
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/http2"
)

func TestParsePriority(t *testing.T) {
	def := http2.Priority{Urgency: 3}
	for in, want := range map[string]http2.Priority{
		"": def, "u=0": {}, "u=7, i": {Urgency: 7, Incremental: true}, "i=?1": {Urgency: 3, Incremental: true},
		"i, u=5;x=1": {Urgency: 5, Incremental: true}, "u=8": def, "u=-1": def, "u=33": def, "u": def, "i=?0": def, "i=1": def,
		"u=1,u=2": {Urgency: 2}, " u=1 \t,\ti ": {Urgency: 1, Incremental: true}, "x=\"a,u\"": def, ",,": def, "u=1;": {Urgency: 1},
	} {
		if got := http2.ParsePriority([]byte(in), def); got != want {
			t.Errorf("%q: got %+v, want %+v", in, got, want)
		}
	}
}

// order answers the streams, all with bodies of two frames, and returns the order of the frames.
func order(cl *client, ids ...uint32) string {
	left := map[*http2.Stream]int{}
	for _, id := range ids {
		st := cl.streams[id]
		cl.conn.BeginHead(st, 200)
		cl.conn.EndHead(false)
		cl.conn.Want(st)
		left[st] = 2
	}
	cl.receive()
	for st, _ := cl.conn.NextSender(); st != nil; st, _ = cl.conn.NextSender() {
		left[st]--
		cl.conn.Data(st, []byte("x"), left[st] == 0)
	}
	var all []string
	for _, f := range cl.receive() {
		id, _, _ := strings.Cut(f, " ")
		all = append(all, id)
	}
	return strings.Join(all, " ")
}

func TestPriorities(t *testing.T) {
	cl := connect(t, nil)
	ask := func(id uint32, priority string) {
		cl.send(headers(id, endStream, get("priority: "+priority)))
	}
	ask(1, "u=5")
	ask(3, "")
	ask(5, "u=0")
	ask(7, "")
	ask(9, "i")
	ask(11, "i")
	ask(13, "u=5, i")
	// Incremental responses take turns with the ones after them; the others are sent completely, in the order of their numbers.
	if got, want := order(cl, 13, 11, 9, 7, 5, 3, 1), "5 5 11 9 3 3 7 7 11 9 13 1 1 13"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestPriorityUpdates(t *testing.T) {
	cl := connect(t, nil)
	update := func(id uint32, p string) string { return frame(tPriorityUpdate, 0, 0, u32(id)+p) }
	cl.send(update(5, "u=7") + update(5, "u=1") + headers(1, endStream, get()) + headers(3, endStream, get("priority: u=0")) + headers(5, endStream, get("priority: u=6")))
	cl.conn.Want(cl.streams[1])
	cl.send(update(1, "u=2") + update(3, "u=4"))
	if got, want := order(cl, 1, 3, 5), "5 5 1 1 3 3"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if cl.streams[1].ID != 1 { // the pool reuses it only with the next frames
		t.Error("the memory of a stream was reused before Done")
	}
}

// A response that could be sent at once does not pass waiting ones of the same urgency.
func TestRoomKeepsTheOrder(t *testing.T) {
	cl := connect(t, nil)
	cl.send(headers(1, endStream, get("priority: u=4")) + headers(3, endStream, get("priority: u=4")) + headers(5, endStream, get("priority: u=1")))
	cl.conn.Want(cl.streams[1])
	if cl.conn.Room(cl.streams[3]) != 0 {
		t.Error("got room for a stream of the same urgency")
	}
	if cl.conn.Room(cl.streams[5]) == 0 {
		t.Error("got no room for a more urgent stream")
	}
	cl.conn.Enough(cl.streams[1])
	if cl.conn.Room(cl.streams[3]) == 0 {
		t.Error("got no room although no stream waits")
	}
}

// Priorities of future streams use a limited amount of memory.
func TestPrioritiesOfFutureStreams(t *testing.T) {
	cl := connect(t, nil)
	for id := uint32(1); id < 401; id += 2 {
		cl.send(frame(tPriorityUpdate, 0, 0, u32(id)+"u=0"))
	}
	if n := cl.conn.Footprint(); n > 512 {
		t.Errorf("got %d bytes", n)
	}
	cl.send(headers(401, endStream, get()))
	if n := cl.conn.Footprint(); cl.err != nil || n > 512 {
		t.Errorf("got %d bytes, error %v", n, cl.err)
	}
}
