package h2_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// large is the size of bodies that no window has room for at once, in bytes.
const large = 3 << 19

// Bodies of all sizes, in both directions, by every kind of producer and reader.
func TestBodies(t *testing.T) {
	st := newStage()
	onEach(t, dunlin.Config{Limits: dunlin.Limits{MaxBody: 2 * large}}, st.register, func(t *testing.T, s *server) {
		p := s.dial(t)
		id := uint32(1)
		for _, n := range []int{0, 1, 16383, 16384, 16385, 65535, 65536, large} {
			for _, path := range []string{"/size/", "/stream/"} {
				p.send(get(id, fmt.Sprint(path, n)))
				p.want(id, "200", pattern(n))
				id += 2
			}
			for path, want := range map[string]string{"/echo": pattern(n), "/length": fmt.Sprint(n), "/std/echo": pattern(n)} {
				p.send(post(id, path))
				p.body(id, pattern(n), endStream)
				p.want(id, "200", want)
				id += 2
				p.send(post(id, path, "content-length", fmt.Sprint(n)))
				p.body(id, pattern(n), 0)
				p.send(headers(id, endStream, block("x-sum", "1"))) // trailers end it
				p.want(id, "200", want)
				id += 2
			}
		}
		wantNothingHeld(t, s)
	})
}

// Many concurrent streams, with interleaved bodies and answers, get the right answers.
func TestConcurrentStreams(t *testing.T) {
	st := newStage()
	onEach(t, dunlin.Config{}, st.register, func(t *testing.T, s *server) {
		p := s.dial(t)
		const streams, size = 80, 20_000
		body := func(id uint32) string { return strings.Repeat(fmt.Sprintf("%04d ", id), size/5) }
		for id := uint32(1); id < 2*streams; id += 2 {
			if id%4 == 1 {
				p.send(post(id, "/echo"))
			} else {
				p.send(post(id, "/std/echo"))
			}
		}
		for from := 0; from < size; from += 5000 {
			for id := uint32(1); id < 2*streams; id += 2 {
				var flags byte
				if from+5000 == size {
					flags = endStream
				}
				p.body(id, body(id)[from:from+5000], flags)
			}
		}
		for id := uint32(1); id < 2*streams; id += 2 {
			p.want(id, "200", body(id))
		}
		wantNothingHeld(t, s)
	})
}

// A client may grant small windows, and change them at any time.
func TestWindows(t *testing.T) {
	st := newStage()
	whole := pattern(100_000)
	for name, f := range map[string]func(*testing.T, *peer, string){
		"a byte at a time": func(t *testing.T, p *peer, path string) {
			p.beQuiet()
			p.set(setting(setWindow, 0))
			p.send(get(1, path+"100"))
			for n := 1; n <= 100; n++ {
				p.send(frame(tWindow, 0, 1, u32(1)))
				p.must("a byte", func() bool { a := p.streams[1]; return a != nil && a.body.Len() == n })
			}
			p.want(1, "200", pattern(100))
		},
		"a window that is opened late": func(t *testing.T, p *peer, path string) {
			p.set(setting(setWindow, 0))
			p.send(get(1, path+"100000"))
			p.must("the head", func() bool { a := p.streams[1]; return a != nil && a.status == "200" })
			p.send(get(3, "/hello?"))
			p.ping("answers?")
			if n := p.got(1); n != 0 {
				t.Errorf("got %d bytes", n)
			}
			p.send(frame(tWindow, 0, 1, u32(100_000)), frame(tWindow, 0, 0, u32(100_000)), frame(tWindow, 0, 3, u32(5)))
			p.want(1, "200", whole)
			p.want(3, "200", "hello")
		},
		"SETTINGS that open it": func(t *testing.T, p *peer, path string) {
			p.set(setting(setWindow, 0))
			p.send(get(1, path+"100000"), get(3, path+"50000"))
			p.must("the heads", func() bool { return p.streams[1] != nil && p.streams[3] != nil })
			p.set(setting(setWindow, 1<<20))
			p.want(1, "200", whole)
			p.want(3, "200", whole[:50_000])
		},
		"SETTINGS that shut it below zero": func(t *testing.T, p *peer, path string) {
			p.beQuiet()
			p.set(setting(setWindow, 10_000))
			p.send(get(1, path+"100000"))
			p.must("the bytes that fit into the window", func() bool { a := p.streams[1]; return a != nil && a.body.Len() == 10_000 })
			p.set(setting(setWindow, 100)) // now it is -9900
			p.send(frame(tWindow, 0, 1, u32(9_900)), frame(tWindow, 0, 0, u32(100_000)))
			p.ping("nothing!")
			if n := p.got(1); n != 10_000 {
				t.Errorf("got %d bytes", n)
			}
			p.send(frame(tWindow, 0, 1, u32(5)))
			p.must("five more", func() bool { return p.streams[1].body.Len() == 10_005 })
			p.send(frame(tWindow, 0, 1, u32(100_000)))
			p.want(1, "200", whole)
		},
		"connection window only": func(t *testing.T, p *peer, path string) {
			p.beQuiet()
			p.set(setting(setWindow, 1<<20))
			p.send(get(1, path+"100000"), get(3, path+"100000"), get(5, path+"100000"))
			p.must("the bytes that fit into the window", func() bool {
				n := 0
				for _, a := range p.streams {
					n += a.body.Len()
				}
				return n == 65535
			})
			p.send(get(7, "/std/trailers")) // a head needs no window
			p.must("a head", func() bool { a := p.streams[7]; return a != nil && a.status == "200" })
			p.send(frame(tWindow, 0, 0, u32(1<<20)))
			for _, id := range []uint32{1, 3, 5} {
				p.want(id, "200", whole)
			}
		},
		"the most there may be": func(t *testing.T, p *peer, path string) {
			p.beQuiet()
			p.set(setting(setWindow, 1<<31-1))
			p.send(frame(tWindow, 0, 0, u32(1<<31-1-65535)))
			p.send(get(1, path+"100000"))
			p.want(1, "200", whole)
		},
		"a reset while it waits": func(t *testing.T, p *peer, path string) {
			p.beQuiet()
			p.set(setting(setWindow, 10))
			p.send(get(1, path+"100000"), get(3, path+"100000"))
			p.must("the bytes that fit into the window", func() bool {
				return p.streams[1] != nil && p.streams[3] != nil && p.streams[1].body.Len() == 10 && p.streams[3].body.Len() == 10
			})
			p.send(frame(tReset, 0, 1, u32(cancel)), frame(tWindow, 0, 0, u32(100_000)), frame(tWindow, 0, 3, u32(100_000)))
			p.want(3, "200", whole)
			p.send(get(5, "/hello"))
			p.want(5, "200", "hello")
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, dunlin.Config{}, st.register, func(t *testing.T, s *server) {
				for _, path := range []string{"/size/", "/stream/"} {
					p := s.dial(t)
					f(t, p, path)
					p.close()
				}
				wantNothingHeld(t, s)
			})
		})
	}
}

// An unread body does not block other streams, and its window is granted again.
func TestUnreadBodies(t *testing.T) {
	st := newStage()
	onEach(t, dunlin.Config{}, st.register, func(t *testing.T, s *server) {
		p := s.dial(t)
		whole := pattern(100_000)
		for id := uint32(1); id < 200; id += 4 {
			p.send(post(id, "/unread"))
			// As much as there is room for, whether or not it is refused meanwhile.
			for rest := whole; rest != ""; {
				n, over := 0, false
				p.must("a window, or the end", func() bool {
					n, over = int(min(int64(len(rest)), p.room[0], p.room[id], 16<<10)), p.streams[id].over()
					return n > 0 || over
				})
				if over {
					break
				}
				p.send(data(id, rest[:n], 0))
				rest = rest[n:]
			}
			if a := p.answer(id); !strings.HasPrefix(a.String(), "200") || a.body.String() != "unread" {
				t.Fatalf("%v: got %q", a, a.body.String())
			}
			p.send(post(id+2, "/echo"))
			p.body(id+2, "abcd", endStream)
			p.want(id+2, "200", "abcd")
		}
		wantNothingHeld(t, s)
	})
}
