package topic

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/invariants"
	"github.com/dunlinhttp/dunlin/internal/ws"
)

// A fakeClient implements client and exchange.Loop for a feed.
type fakeClient struct {
	woken int
	calls []func()
}

func (c *fakeClient) Loop() exchange.Loop { return c }
func (c *fakeClient) Wake()               { c.woken++ }
func (c *fakeClient) WakeHere()           { c.woken++ }
func (c *fakeClient) Call(f func()) bool  { c.calls = append(c.calls, f); return true }

// turn runs the functions passed to Call, and returns the number of calls of Wake and WakeHere.
func (c *fakeClient) turn() (woken int) {
	for _, f := range c.calls {
		f()
	}
	woken = c.woken
	c.calls, c.woken = nil, 0
	return woken
}

func newFeed(t testing.TB, h *Hub, as encoding, names ...string) *feed {
	t.Helper()
	f := &feed{hub: h, client: new(fakeClient), as: as}
	if err := f.subscribe("", names); err != nil {
		t.Fatal(err)
	}
	return f
}

func publishTo(t testing.TB, h *Hub, name string, messages ...string) {
	t.Helper()
	for _, m := range messages {
		if err := h.Topic(name).Publish([]byte(m)); err != nil {
			t.Fatal(err)
		}
	}
}

// served returns an app that has served a request, and so has a memory budget.
func served(t *testing.T) *dunlin.App {
	app := dunlin.New(dunlin.Config{})
	resp, err := http.Get("http://" + dunlintest.Serve(t, app) + "/")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return app
}

// texts returns the payloads of frames.
func texts(t testing.TB, b []byte) (list []string) {
	t.Helper()
	for len(b) > 0 {
		n, head := int(b[1]), 2
		if b[1] == 126 {
			n, head = int(b[2])<<8|int(b[3]), 4
		}
		if b[0] != 0x81 || b[1] == 127 || len(b) < head+n {
			t.Fatalf("no frame: %.60q", b)
		}
		list = append(list, string(b[head:head+n]))
		b = b[head+n:]
	}
	return list
}

// A client that accepts any number of bytes at a time gets whole frames in order, each once, also when its connection has other
// output.
func TestEveryByteOnce(t *testing.T) {
	app := served(t)
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 1))
		h := New(app, Settings{MaxMessages: 1 << 20, MaxBytes: 1 << 30})
		f := newFeed(t, h, asFrame, "a", "b", "c")
		var got []byte
		wantOwn, wantMessages := 0, 0
		for range 60 {
			for range random.IntN(4) {
				publishTo(t, h, string('a'+rune(random.IntN(3))), strings.Repeat("x", 1+random.IntN(300)))
				wantMessages++
			}
			var out []byte
			own := 0
			if random.IntN(3) == 0 {
				out = f.Rest(out)
				out = append(ws.AppendHeader(out, ws.Text, true, false, 3), "own"...)
				own, wantOwn = len(out), wantOwn+1
			}
			out, _ = f.Append(out)
			unsent := random.IntN(len(out) + 1)
			if random.IntN(2) == 0 {
				unsent = 0
			}
			back := f.Unsent(unsent)
			if want := min(unsent, len(out)-own); back != want {
				t.Fatalf("seed %d: took back %d of %d bytes, want %d", seed, back, unsent, want)
			}
			got = append(got, out[:len(out)-back]...)
		}
		out, more := f.Append(nil)
		if f.Unsent(0); more {
			t.Errorf("seed %d: there is more", seed)
		}
		var ids, own int
		last := ""
		for _, text := range texts(t, append(got, out...)) {
			switch id, _, ok := strings.Cut(text, " "); {
			case text == "own":
				own++
			case id == "!at":
			case ok:
				ids++
				if len(id) < len(last) || len(id) == len(last) && id <= last {
					t.Fatalf("seed %d: %s after %s", seed, id, last)
				}
				last = id
			}
		}
		if ids != wantMessages || own != wantOwn {
			t.Errorf("seed %d: %d messages and %d own ones, want %d and %d", seed, ids, own, wantMessages, wantOwn)
		}
		f.Close()
		checkEmpty(t, app, h)
	}
}

// checkEmpty checks that no memory is charged after all messages were dropped.
func checkEmpty(t testing.TB, app *dunlin.App, h *Hub) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.logs {
		h.drop(l)
	}
	if n := app.Stats().Memory.HeldFor["cache"]; n != 0 {
		t.Errorf("%d bytes are still charged", n)
	}
}

// A message of which a client has a part stays in memory, and charged, until the client has the rest.
func TestPartOfDroppedMessage(t *testing.T) {
	app := served(t)
	h := New(app, Settings{MaxMessages: 2, Slow: Skip})
	f := newFeed(t, h, asFrame, "x")
	publishTo(t, h, "x", "first")
	out, _ := f.Append(nil)
	f.Unsent(3)
	got := append([]byte(nil), out[:len(out)-3]...)
	with := app.Stats().Memory.HeldFor["cache"]
	publishTo(t, h, "x", "2", "3", "4", "5")
	out, _ = f.Append(nil)
	f.Unsent(0)
	got = append(got, out...)
	var data []string
	for _, text := range texts(t, got) {
		if _, d, ok := strings.Cut(text, "\n"); ok {
			data = append(data, d)
		}
	}
	if s := fmt.Sprint(data); s != "[first 4 5]" {
		t.Errorf("got %s", s)
	}
	if with == 0 {
		t.Error("nothing was charged")
	}
	f.Close()
	checkEmpty(t, app, h)
}

func TestPolicies(t *testing.T) {
	for _, v := range []struct {
		policy Policy
		want   string
	}{
		{Resync, "!at 0|!resync 6|7"},
		{Skip, "!at 0|5|6|7"},
		{Cut, "!at 0"},
	} {
		t.Run(v.policy.String(), func(t *testing.T) {
			h := New(dunlin.New(dunlin.Config{}), Settings{MaxMessages: 2, Slow: v.policy})
			f := newFeed(t, h, asFrame, "x")
			out, _ := f.Append(nil)
			f.Unsent(0)
			f.Hold()
			publishTo(t, h, "x", "1", "2", "3", "4", "5", "6")
			next, more := f.Append(nil)
			f.Unsent(0)
			out = append(out, next...)
			if more != (v.policy == Cut) || f.Cut() != (v.policy == Cut) {
				t.Errorf("more: %v, cut: %v", more, f.Cut())
			}
			if v.policy != Cut {
				publishTo(t, h, "x", "7")
				out, _ = f.Append(out)
				f.Unsent(0)
			}
			var got []string
			for _, text := range texts(t, out) {
				if _, data, ok := strings.Cut(text, "\n"); ok {
					text = data
				}
				got = append(got, strings.Replace(text, epoch(h)+"-", "", 1))
			}
			if s := strings.Join(got, "|"); s != v.want {
				t.Errorf("got %s, want %s", s, v.want)
			}
			f.Close()
		})
	}
}

// after finds the next message for every position of a subscriber, also among stale entries.
func TestAfter(t *testing.T) {
	h := New(dunlin.New(dunlin.Config{}), Settings{Keyed: true})
	random := rand.New(rand.NewPCG(1, 1))
	for range 500 {
		if err := h.Topic("x").Put(fmt.Sprint(random.IntN(9)), []byte("v")); err != nil {
			t.Fatal(err)
		}
		l := h.logs["x"]
		l.mu.Lock()
		for offset := range l.newest.Load() + 2 {
			var want *entry
			for _, e := range l.entries {
				if !e.stale && e.offset > offset {
					want = e
					break
				}
			}
			if got := l.after(offset, 0); got != want {
				t.Fatalf("after %d: %v, want %v", offset, got, want)
			}
		}
		if len(l.entries) > 20 {
			t.Errorf("%d entries for 9 keys", len(l.entries))
		}
		l.mu.Unlock()
	}
}

// Each event has the fields of the HTML standard and an ID.
func TestEvents(t *testing.T) {
	h := New(dunlin.New(dunlin.Config{}), Settings{})
	f := newFeed(t, h, asEvent, "x")
	publishTo(t, h, "x", "one\ntwo")
	out, _ := f.Append(nil)
	want := "id: E-0\n\nid: E-1\nevent: x\ndata: one\ndata: two\n\n"
	if got := strings.ReplaceAll(string(out), epoch(h), "E"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	f.Close()
}

// Topics without subscribers do not exhaust the memory for topics with subscribers.
func TestMemoryGoesToSubscribers(t *testing.T) {
	app := dunlin.New(dunlin.Config{Limits: dunlin.Limits{Memory: 4 << 20}})
	resp, err := http.Get("http://" + dunlintest.Serve(t, app) + "/")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	h := New(app, Settings{})
	f := newFeed(t, h, asFrame, "wanted")
	message := strings.Repeat("x", 10_000)
	for i := range 1000 {
		publishTo(t, h, fmt.Sprint("unwanted", i), message)
	}
	publishTo(t, h, "wanted", message, message)
	out, _ := f.Append(nil)
	f.Unsent(0)
	if list := texts(t, out); len(list) != 3 {
		t.Errorf("got %d messages", len(list))
	}
	if n := app.Stats().Memory; n.Held > n.Budget*3/4 {
		t.Errorf("%d bytes are held of %d", n.Held, n.Budget)
	}
	f.Close()
	checkEmpty(t, app, h)
}

// When clients need memory, the oldest messages are dropped.
func TestShrink(t *testing.T) {
	app := served(t)
	h := New(app, Settings{})
	publishTo(t, h, "x", strings.Repeat("x", 1000), strings.Repeat("y", 1000), "z")
	before := app.Stats().Memory.HeldFor["cache"]
	h.shrink(1)
	if freed := before - app.Stats().Memory.HeldFor["cache"]; freed < 1000 || freed > 4000 {
		t.Errorf("freed %d bytes for 1", freed)
	}
	h.shrink(1 << 40)
	if l := h.logs["x"]; len(l.entries) != 0 || l.floor != 3 {
		t.Errorf("%d messages are left, floor %d", len(l.entries), l.floor)
	}
}

// Many messages wake each client once in a turn of its loop. A client that does not accept output is not woken.
func TestPublishMarksLoops(t *testing.T) {
	h := New(dunlin.New(dunlin.Config{}), Settings{MaxMessages: 20, Slow: Cut})
	f := newFeed(t, h, asFrame, "x", "y")
	loop := f.client.(*fakeClient)
	f.Append(nil)
	f.Unsent(0)
	loop.turn()
	publishTo(t, h, "x", "1", "2", "3")
	if n, woken := len(loop.calls), loop.turn(); n != 1 || woken != 1 {
		t.Errorf("three messages called the loop %d times and woke the client %d times", n, woken)
	}
	publishTo(t, h, "x", "4")
	out, _ := f.Append(nil)
	f.Unsent(len(out)) // the client accepts no output
	loop.turn()
	publishTo(t, h, "x", "5")
	if woken := loop.turn(); woken != 0 {
		t.Errorf("a client that accepts nothing was woken %d times", woken)
	}
	for i := range 20 {
		publishTo(t, h, "x", fmt.Sprint("more", i))
	}
	if woken := loop.turn(); woken != 1 || !f.Cut() {
		t.Errorf("a client that must be cut was woken %d times, cut: %v", woken, f.Cut())
	}
	f.Close()
	publishTo(t, h, "x", "last")
	if woken := loop.turn(); woken != 0 {
		t.Error("a closed client was woken")
	}
}

// A delivery does not allocate memory.
func TestDeliveryAllocatesNothing(t *testing.T) {
	if invariants.Enabled {
		t.Skip("test builds drop pooled memory")
	}
	h := New(dunlin.New(dunlin.Config{}), Settings{})
	var feeds []*feed
	for range 100 {
		feeds = append(feeds, newFeed(t, h, asFrame, "x"))
	}
	out := make([]byte, 0, 32<<10)
	deliver := func() {
		for _, f := range feeds {
			b, _ := f.Append(out)
			if f.Unsent(0); len(b) == 0 {
				t.Fatal("nothing was sent")
			}
		}
	}
	message := bytes.Repeat([]byte("x"), 200)
	allocs := testing.AllocsPerRun(100, func() {
		if err := h.Topic("x").Publish(message); err != nil {
			t.Fatal(err)
		}
		for _, f := range feeds {
			f.client.(*fakeClient).calls = f.client.(*fakeClient).calls[:0] // the loop below delivers to all subscribers
		}
		deliver()
	})
	if allocs > 5 { // the allocations of Publish
		t.Errorf("%v allocations for 100 deliveries", allocs)
	}
	for _, f := range feeds {
		f.Close()
	}
}

// A message is compressed once for all subscribers, and the result is charged until the message has left the log.
func TestCompressedFrameIsSharedAndCharged(t *testing.T) {
	app := served(t)
	h := New(app, Settings{MaxMessages: 1})
	f, g := newFeed(t, h, asDeflated, "a"), newFeed(t, h, asDeflated, "a")
	for range 3 {
		publishTo(t, h, "a", strings.Repeat("compress this ", 200))
		l := h.logs["a"]
		before := l.bytes
		out, _ := f.Append(nil)
		f.Unsent(0)
		e := l.entries[0]
		frame := e.as[asDeflated]
		if !bytes.HasSuffix(out, frame) || len(frame) > 400 || e.as[asFrame] != nil {
			t.Fatalf("sent %d bytes, with a frame of %d", len(out), len(frame))
		}
		if grown := l.bytes - before; grown < int64(len(frame)) || e.cost != l.bytes {
			t.Errorf("a frame of %d bytes is charged %d", len(frame), grown)
		}
		g.Append(nil)
		g.Unsent(0)
		if &e.as[asDeflated][0] != &frame[0] {
			t.Error("the message was compressed twice")
		}
	}
	f.Close()
	g.Close()
	h.mu.Lock()
	h.drop(h.logs["a"])
	h.mu.Unlock()
	if n := app.Stats().Memory.HeldFor["cache"]; n != 0 {
		t.Errorf("%d bytes are charged in the end", n)
	}
}

// A feed may read a frame while another one finds that compression does not make the message shorter. The race detector sees a
// write.
func TestFeedsShareAnUncompressedFrame(t *testing.T) {
	h := New(served(t), Settings{MaxMessages: 1})
	plain, compressed := newFeed(t, h, asFrame, "a"), newFeed(t, h, asDeflated, "a")
	for range 50 {
		publishTo(t, h, "a", "x")
		var both sync.WaitGroup
		for _, f := range []*feed{plain, compressed} {
			both.Go(func() {
				f.Append(nil)
				f.Unsent(0)
			})
		}
		both.Wait()
	}
	plain.Close()
	compressed.Close()
}

// A client that has missed messages of several topics gets one announcement.
func TestOneResyncForAllTopics(t *testing.T) {
	h := New(served(t), Settings{MaxMessages: 1})
	f := newFeed(t, h, asFrame, "a", "b", "c")
	f.Append(nil)
	f.Unsent(0)
	for _, name := range []string{"a", "b", "c"} {
		publishTo(t, h, name, "1", "2")
	}
	out, _ := f.Append(nil)
	f.Unsent(0)
	if list := texts(t, out); len(list) != 1 || !strings.HasPrefix(list[0], "!resync ") {
		t.Errorf("got %q", list)
	}
	f.Close()
}

// epoch returns the first part of the IDs of a hub that is not shared.
func epoch(h *Hub) string {
	text, _, _ := strings.Cut(string(h.ids.Append(nil, 0)), "-")
	return text
}
