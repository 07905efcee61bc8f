package topic

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
)

// A reader is a client that builds the state of a keyed topic from its messages.
type reader struct {
	f     *feed
	input []byte
	last  string
	state map[string]string
}

// read applies the frames that have arrived entirely.
func (r *reader) read(t *testing.T) {
	for len(r.input) > 1 && len(r.input) >= 2+int(r.input[1]) {
		text := string(r.input[2 : 2+int(r.input[1])])
		r.input = r.input[2+int(r.input[1]):]
		head, data, isMessage := strings.Cut(text, "\n")
		word, rest, _ := strings.Cut(head, " ")
		switch {
		case !isMessage:
			r.last = rest
			if word == "!resync" {
				clear(r.state)
			}
			continue
		case strings.HasPrefix(data, "-"):
			delete(r.state, data[1:])
		default:
			key, value, _ := strings.Cut(data, "=")
			r.state[key] = value
		}
		r.last = word
	}
	if len(r.input) > 0 && r.input[0] != 0x81 {
		t.Fatalf("no frame: %q", r.input)
	}
}

// Clients of a keyed topic that accept any number of bytes at a time, and whose connections break at random, have the state of the
// topic in the end, after any sequence of Put, Delete, Join and Leave.
func TestKeyedState(t *testing.T) {
	app := served(t)
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 3))
		h := New(app, Settings{Keyed: true, MaxMessages: 16})
		topic := h.Topic("x")
		want := map[string]string{}
		var readers []*reader
		for range 3 {
			readers = append(readers, &reader{f: newFeed(t, h, asFrame, "x"), state: map[string]string{}})
		}
		var members []*feed
		check := func(err error) {
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		for i := range 200 {
			key := fmt.Sprint("k", random.IntN(40))
			value := fmt.Sprint(i)
			switch random.IntN(4) {
			case 0:
				if len(want) < 8 {
					check(topic.Put(key, []byte(key+"="+value)))
					want[key] = value
				}
			case 1:
				for key = range want {
					break
				}
				check(topic.Delete(key, []byte("-"+key)))
				delete(want, key)
			case 2:
				if len(want) < 8 {
					f := &feed{hub: h, client: new(fakeClient), as: asFrame}
					check(f.join("x", key, []byte(key+"="+value), []byte("-"+key)))
					members, want[key] = append(members, f), value
				}
			case 3:
				if len(members) > 0 {
					n := random.IntN(len(members))
					gone := members[n]
					key := gone.holds[0].key
					held := h.logs["x"].members[key]
					last := held == gone.holds[0].member && held.local == 1
					gone.Close()
					members = append(members[:n], members[n+1:]...)
					if last {
						delete(want, key)
					}
				}
			}
			r := readers[random.IntN(len(readers))]
			if random.IntN(10) == 0 { // cut
				r.f.Close()
				r.input = nil
				r.f = &feed{hub: h, client: new(fakeClient), as: asFrame}
				check(r.f.subscribe(r.last, []string{"x"}))
				continue
			}
			out, _ := r.f.Append(nil)
			back := r.f.Unsent(random.IntN(len(out) + 1))
			r.input = append(r.input, out[:len(out)-back]...)
			r.read(t)
		}
		for n, r := range readers {
			for more := true; more; {
				var out []byte
				out, more = r.f.Append(nil)
				r.f.Unsent(0)
				r.input = append(r.input, out...)
			}
			r.read(t)
			if !maps.Equal(r.state, want) {
				t.Fatalf("seed %d: reader %d has %v, want %v", seed, n, r.state, want)
			}
			r.f.Close()
		}
		for _, f := range members {
			f.Close()
		}
		if members := topic.Members(); len(members) > 0 {
			t.Errorf("seed %d: ghosts %v", seed, members)
		}
		h.mu.Lock()
		if l := h.logs["x"]; l != nil {
			h.drop(l)
		}
		h.mu.Unlock()
	}
	if n := app.Stats().Memory.HeldFor["cache"]; n != 0 {
		t.Errorf("%d bytes are charged in the end", n)
	}
}

// Neither clients that need memory nor the limits of the log remove members.
func TestMembersStay(t *testing.T) {
	h := New(served(t), Settings{Keyed: true, MaxMessages: 4, MaxBytes: 4000})
	x := h.Topic("x")
	f := &feed{hub: h, client: new(fakeClient), as: asDeflated}
	for _, key := range []string{"a", "b", "c"} {
		if err := f.join("x", key, []byte(key+"="), []byte("-"+key)); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.join("x", "long", []byte(strings.Repeat("long", 400)), []byte("-")); err != ErrFull {
		t.Errorf("a long member: %v", err)
	}
	for i := range 5 { // the log has room for the members and one more message
		if err := x.Put(fmt.Sprint(i), []byte("v")); err != nil {
			t.Fatal(err)
		}
	}
	h.shrink(1 << 40)
	g := newFeed(t, h, asFrame, "x")
	out, _ := g.Append(nil)
	if list := texts(t, out); len(list) != 4 { // with the announcement of the position
		t.Errorf("a new subscriber got %q", list)
	}
	g.Unsent(0)
	if err := f.join("x", "d", []byte("d="), []byte("-d")); err != nil {
		t.Fatal(err)
	}
	if err := f.join("x", "e", []byte("e="), []byte("-e")); err != ErrFull {
		t.Errorf("one member too many: %v", err)
	}
	if err := x.Put("v", []byte("v")); err != ErrFull {
		t.Errorf("a message beside a full log of members: %v", err)
	}
	if got := strings.Join(x.Members(), ""); got != "abcd" {
		t.Errorf("members %s", got)
	}
	f.Close()
	g.Close()
	if n := len(x.Members()); n != 0 {
		t.Errorf("%d members are left", n)
	}
}

// A member is removed even if there is no memory for its message left. Subscribers then get a resync.
func TestMemberLeavesWithoutMemory(t *testing.T) {
	h := New(served(t), Settings{Keyed: true, MaxBytes: 1 << 30})
	f, g := &feed{hub: h, client: new(fakeClient), as: asFrame}, newFeed(t, h, asFrame, "x")
	long := []byte(strings.Repeat("left", 1<<20))
	if err := f.join("x", "a", []byte("a="), long); err != nil {
		t.Fatal(err)
	}
	g.Append(nil)
	g.Unsent(0)
	filled := int64(1 << 20)
	for ; h.memory.Reserve(filled); filled += 1 << 20 {
		h.memory.Release(filled)
	}
	if !h.memory.Reserve(filled - 1<<20) {
		t.Fatal("the memory is not free any more")
	}
	f.Close()
	h.memory.Release(filled - 1<<20)
	out, _ := g.Append(nil)
	g.Unsent(0)
	if list := texts(t, out); len(list) != 1 || !strings.HasPrefix(list[0], "!resync ") {
		t.Errorf("the subscriber got %q", list)
	}
	g.Close()
}
