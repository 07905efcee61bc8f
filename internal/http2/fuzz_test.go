package http2_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/hpack"
	"github.com/dunlinhttp/dunlin/internal/http2"
)

// A rig runs a connection with random steps of the client and of the server's owner. The client checks all frames that it
// receives: only frames of streams that it opened, in an order that the RFC allows, within its windows, and each response on
// its own stream.
type rig struct {
	t       testing.TB
	conn    http2.Conn
	pool    http2.Pool
	steps   []byte
	next    uint32 // number of the next new stream
	unread  []byte
	over    bool
	decoder hpack.Decoder
	list    hpack.List

	live     map[uint32]*http2.Stream // streams of the owner, until Done
	begun    map[uint32]bool          // streams with an event RequestBegun
	head     map[uint32]bool          // received a final head
	ended    map[uint32]bool          // received END_STREAM or RST_STREAM
	window   map[uint32]int64         // send window of the server, by stream
	room     int64                    // send window of the server on the connection
	first    int64                    // SETTINGS_INITIAL_WINDOW_SIZE
	block    []byte
	blockOf  uint32
	blockEnd bool
}

var rigLimits = func() http2.Limits {
	l := http2.DefaultLimits()
	l.MaxStreams, l.StreamWindow, l.MaxStreamWindow, l.ConnWindow = 6, 1000, 4000, 70_000
	l.Fields = hpack.Limits{MaxList: 2000, MaxFields: 20, MaxWork: 20_000}
	l.MaxBlock = 4000
	return l
}()

func newRig(t testing.TB, steps []byte) *rig {
	r := &rig{
		t: t, steps: steps, next: 1, room: 65535, first: 65535,
		live: map[uint32]*http2.Stream{}, begun: map[uint32]bool{}, head: map[uint32]bool{}, ended: map[uint32]bool{}, window: map[uint32]int64{},
	}
	r.decoder.Init(nil)
	r.conn.Init(&rigLimits, &r.pool, nil, 1)
	r.client(opening)
	return r
}

// arg consumes the next byte of the steps. It returns 0 after their end.
func (r *rig) arg() int {
	if len(r.steps) == 0 {
		return 0
	}
	b := r.steps[0]
	r.steps = r.steps[1:]
	return int(b)
}

// stream picks the number of a stream, usually one that was opened.
func (r *rig) stream() uint32 {
	n := r.arg()
	if n >= 250 {
		return uint32(n - 250) // 0, an even number or a past number
	}
	if r.next == 1 {
		return 1
	}
	return r.next - 2 - 2*(uint32(n)%min(r.next/2, 8))
}

// mine picks a stream that the owner has not finished.
func (r *rig) mine() *http2.Stream {
	id := r.stream()
	return r.live[id]
}

func (r *rig) open(flags byte, block string) {
	id := r.next
	r.next += 2
	r.window[id] = r.first
	r.client(headers(id, flags, block))
}

// named records HEADERS of the client, on a stream that may be new.
func (r *rig) named(id uint32) {
	if id >= r.next && id%2 == 1 {
		r.next, r.window[id] = id+2, r.first
	}
}

// run executes all steps.
func (r *rig) run() {
	for len(r.steps) > 0 && !r.over {
		r.step()
		r.check()
		if r.conn.Len() > rigLimits.MaxStreams {
			r.t.Fatalf("got %d open streams", r.conn.Len())
		}
		if n := r.conn.Footprint(); n > 40<<10 {
			r.t.Fatalf("got a footprint of %d bytes", n)
		}
	}
}

func (r *rig) step() {
	switch r.arg() % 22 {
	case 0, 1:
		r.open(endStream, get())
	case 2:
		r.open(0, post())
	case 3:
		r.open(0, post(fmt.Sprintf("content-length: %d", r.arg()*8)))
	case 4:
		r.open(endStream, strings.Replace(get("x-a: bc"), "\x00\x03x-a", "\x40\x03x-a", 1))
	case 5:
		r.client(frame(tData, byte(r.arg()%2), r.stream(), strings.Repeat("d", r.arg()*8)))
	case 6:
		r.client(frame(tData, padded, r.stream(), "\x03"+strings.Repeat("d", r.arg())+"\x00\x00\x00"))
	case 7:
		if id := r.stream(); r.live[id] != nil && !r.live[id].Closed() || r.arg()%16 == 0 {
			r.named(id)
			r.client(headers(id, endStream, block("a: b")))
		}
	case 8:
		r.client(frame(tReset, 0, r.stream(), u32(8)))
	case 9:
		r.opened(0, uint32(r.arg())<<(r.arg()%8))
	case 10:
		r.opened(r.stream(), uint32(r.arg())<<(r.arg()%8))
	case 11:
		r.settings(int64(r.arg()) << (r.arg() % 12))
	case 12:
		r.client(frame(tPing, 0, 0, "12345678"))
		if r.arg()%2 == 0 {
			r.client(pong)
		}
	case 13:
		r.client(frame(tPriorityUpdate, 0, 0, u32(r.stream())+fmt.Sprintf("u=%d, i=?%d", r.arg()%8, r.arg()%2)))
	case 14: // any frame
		if r.arg()%8 != 0 {
			break
		}
		kind, flags, id := byte(r.arg()%20), byte(r.arg()), r.stream()
		n := min(r.arg(), len(r.steps))
		payload := string(r.steps[:n])
		r.steps = r.steps[n:]
		if kind == tHeaders {
			r.named(id)
		}
		if kind != tWindow && kind != tSettings { // these would change the windows that the rig tracks
			r.client(frame(kind, flags, id, payload))
		}
	case 15: // a head in pieces
		b, id, cut := get(), r.next, r.arg()%30
		r.next += 2
		r.window[id] = r.first
		r.client(frame(tHeaders, endStream, id, b[:cut]) + frame(tContinuation, 0, id, b[cut:30]) + frame(tContinuation, endHeaders, id, b[30:]))
	case 16:
		r.client(frame(tSettings, ack, 0, ""))
	default:
		r.owner()
	}
}

// opened sends a WINDOW_UPDATE.
func (r *rig) opened(id, by uint32) {
	r.client(frame(tWindow, 0, id, u32(by)))
	if id == 0 {
		r.room += int64(by)
	} else if !r.over {
		r.window[id] += int64(by)
	}
}

func (r *rig) settings(first int64) {
	r.client(frame(tSettings, 0, 0, setting(4, uint32(first))))
	for id := range r.window {
		r.window[id] += first - r.first
	}
	r.first = first
}

// owner does one random action of the connection's owner.
func (r *rig) owner() {
	what, st := r.arg()%7, r.mine()
	if what == 0 {
		if st, n := r.conn.NextSender(); st != nil {
			r.conn.Data(st, r.body(st, n), false)
		}
		return
	}
	if st == nil {
		return
	}
	switch what {
	case 1: // a complete response, as far as the windows allow
		if !st.Answered() && r.conn.BeginHead(st, 200) {
			r.conn.Field("X-Stream", fmt.Sprint(st.ID))
			r.conn.EndHead(false)
		}
		if st.Answered() && !st.Closed() {
			r.conn.Data(st, r.body(st, min(r.conn.Room(st), 100)), true)
		}
	case 2:
		if !st.Answered() && r.conn.BeginHead(st, 103+97*(r.arg()%2)) {
			r.conn.Field("X-Stream", fmt.Sprint(st.ID))
			r.conn.EndHead(false)
		}
	case 3:
		if st.Answered() {
			r.conn.Want(st)
		}
	case 4:
		r.conn.Consumed(st, min(st.Unread(), r.arg()*8))
	case 5:
		if st.Answered() && r.conn.BeginTrailers(st) {
			r.conn.Field("X-Stream", fmt.Sprint(st.ID))
			r.conn.EndTrailers()
			if r.arg()%2 == 0 {
				r.conn.Part(st)
			}
		} else if r.arg()%4 == 0 {
			r.conn.Reset(st, http2.InternalError)
		}
	case 6:
		delete(r.live, st.ID)
		r.conn.Done(st)
	}
}

// body returns n bytes of the body for a stream, which repeats the stream's number.
func (r *rig) body(st *http2.Stream, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(st.ID)
	}
	return b
}

// client passes input of the client to the connection.
func (r *rig) client(in string) {
	r.unread = append(r.unread, in...)
	for !r.over {
		n, ev, err := r.conn.Next(r.unread)
		r.unread = r.unread[n:]
		switch {
		case err != nil:
			r.over = true
		case ev.Kind == http2.NeedMore:
			return
		case ev.Kind == http2.Costly:
		case ev.Kind == http2.RequestBegun:
			if ev.Stream.ID >= r.next || r.begun[ev.Stream.ID] {
				r.t.Fatalf("got RequestBegun for stream %d, which the client has not opened", ev.Stream.ID)
			}
			r.begun[ev.Stream.ID], r.live[ev.Stream.ID] = true, ev.Stream
			ev.Stream.Owner = ev.Stream.ID
		default:
			if ev.Stream.Owner != ev.Stream.ID {
				r.t.Fatalf("got an event for stream %d with the owner of stream %v", ev.Stream.ID, ev.Stream.Owner)
			}
		}
	}
}

// check verifies the output of the connection.
func (r *rig) check() {
	out := r.conn.Out
	r.conn.Out = nil
	for len(out) > 0 {
		n := int(out[0])<<16 | int(out[1])<<8 | int(out[2])
		kind, flags, id := out[3], out[4], binary.BigEndian.Uint32(out[5:])
		payload := out[9 : 9+n]
		out = out[9+n:]
		if r.blockOf != 0 && (kind != tContinuation || id != r.blockOf) {
			r.t.Fatalf("got frame type %d on stream %d within a field block", kind, id)
		}
		switch kind {
		case tHeaders, tContinuation:
			r.checkHead(id, flags, payload)
		case tData:
			r.checkData(id, flags, payload)
		case tReset:
			if id >= r.next || id%2 == 0 {
				r.t.Fatalf("got RST_STREAM of stream %d, which the client has not opened", id)
			}
			r.ended[id] = true
		}
	}
}

func (r *rig) checkHead(id uint32, flags byte, payload []byte) {
	if !r.begun[id] || r.ended[id] {
		r.t.Fatalf("got HEADERS on stream %d, begun: %v, ended: %v", id, r.begun[id], r.ended[id])
	}
	r.block = append(r.block, payload...)
	if flags&endHeaders == 0 {
		r.blockOf, r.blockEnd = id, flags&endStream != 0
		return
	}
	lim := hpack.Limits{MaxList: 1 << 20, MaxFields: 1000, MaxWork: 1 << 20}
	if err := r.decoder.Decode(r.block, &r.list, &lim); err != nil {
		r.t.Fatal(err)
	}
	r.ended[id] = flags&endStream != 0 || r.blockOf != 0 && r.blockEnd
	r.block, r.blockOf = nil, 0
	if i := r.list.Index("x-stream", 0); i < 0 || string(r.list.Value(i)) != fmt.Sprint(id) {
		r.t.Fatalf("got the head of another stream on stream %d: %q", id, lines(&r.list))
	}
	if r.list.Index(":status", 0) == 0 && string(r.list.Value(0)) >= "200" {
		r.head[id] = true
	}
}

func (r *rig) checkData(id uint32, flags byte, payload []byte) {
	if !r.head[id] || r.ended[id] {
		r.t.Fatalf("got DATA on stream %d, head sent: %v, ended: %v", id, r.head[id], r.ended[id])
	}
	for _, c := range payload {
		if c != byte(id) {
			r.t.Fatalf("got the body of another stream on stream %d", id)
		}
	}
	n := int64(len(payload))
	r.room -= n
	r.window[id] -= n
	if n > 0 && (r.room < 0 || r.window[id] < 0) {
		r.t.Fatalf("got %d bytes of DATA with a window of %d on the connection and %d on stream %d", n, r.room, r.window[id], id)
	}
	r.ended[id] = flags&endStream != 0
}

func FuzzFrames(f *testing.F) {
	f.Add([]byte("\x00\x11\x01\x00\x12\x06\x00"))
	for seed := range uint64(40) {
		f.Add(randomSteps(seed))
	}
	f.Fuzz(func(t *testing.T, steps []byte) {
		if len(steps) < 1<<13 {
			newRig(t, steps).run()
		}
	})
}

func randomSteps(seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 3))
	steps := make([]byte, 400)
	for i := range steps {
		steps[i] = byte(r.UintN(256))
	}
	return steps
}

// TestRandomSteps runs FuzzFrames with a fixed number of seeds.
func TestRandomSteps(t *testing.T) {
	seeds := uint64(1000)
	if testing.Short() {
		seeds = 200
	}
	long := 0
	for seed := range seeds {
		r := newRig(t, randomSteps(seed+1000))
		r.run()
		if r.next > 40 {
			long++
		}
	}
	if long < int(seeds)/10 {
		t.Errorf("only %d of %d connections ran many steps", long, seeds)
	}
}
