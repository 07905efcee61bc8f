package looph2_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/stats"
)

// However a stream ends, and even if its action runs on, the reservation for its answer is released, and so is the part that
// was made. Only the bytes that actions have read of bodies, and the answers that clients have not taken yet, stay charged.
func TestReservationEndsWithStream(t *testing.T) {
	onLoop(t)
	const size, bodySize, conns, perConn, rounds = 100_000, 24_000, 4, 12, 6
	var entered, bodies atomic.Int64
	var gate atomic.Pointer[chan bool]
	opened := make(chan bool)
	gate.Store(&opened)
	blocks := func() {
		entered.Add(1)
		<-*gate.Load()
		entered.Add(-1)
	}
	config := dunlin.Config{Engine: dunlin.EngineLoop, Limits: dunlin.Limits{Memory: 512 << 20, QueueTarget: -1, MaxConcurrent: 1000}, Timeouts: dunlin.Timeouts{Write: time.Hour, Body: time.Hour}}
	s := startH2(t, config, func(app *dunlin.App) {
		large := func(r *dunlin.Request) dunlin.Response {
			if r.Query("blocks") != "" {
				blocks()
			}
			return dunlin.Bytes("", make([]byte, size))
		}
		app.Get("/large", large)
		app.Get("/timed", large).Timeout(20 * time.Millisecond)
		app.Get("/unchanged", func(r *dunlin.Request) dunlin.Response {
			if r.Query("blocks") != "" {
				blocks()
				return dunlin.Empty().Status(http.StatusNotModified)
			}
			return large(r)
		})
		app.Get("/stream", func(*dunlin.Request) dunlin.Response {
			return dunlin.Stream("", func(w io.Writer) error {
				_, err := w.Write(make([]byte, 10_000)) // more than the buffer of an answer holds
				blocks()
				return err
			})
		})
		app.Mount("/std", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for range 10 {
				_, _ = w.Write(make([]byte, size))
			}
		}))
		app.Post("/body", func(r *dunlin.Request) dunlin.Response {
			b, err := r.Bytes()
			if err != nil {
				return dunlin.Error(err)
			}
			bodies.Add(int64(cap(b)))
			defer bodies.Add(-int64(cap(b)))
			blocks()
			return dunlin.Bytes("", make([]byte, size))
		})
	})
	for _, path := range []string{"/large", "/timed", "/unchanged"} {
		status, body := s.get(path) // from now on the routes' estimates are known
		if status != 200 || len(body) != size {
			t.Fatalf("%s: got %d with %d bytes", path, status, len(body))
		}
	}
	defer func() { close(*gate.Load()) }()
	memory := func() stats.Memory { return s.app.Stats().Memory }
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for round := range rounds {
		type stream struct {
			c  *h2Conn
			id uint32
		}
		var others []stream // their actions block, or wait for their clients
		var left []stream   // their answers are made
		var all []*h2Conn
		blocked := int64(0) // actions expected to call blocks
		for range conns {
			c := newH2Conn(t, s.addr)
			_ = c.frame(4, 0, 0, 0, 4, 0, 0, 0, 0)       // closes the initial windows of streams
			_ = c.frame(8, 0, 0, 0x3f, 0xff, 0xff, 0xff) // opens the connection's window wide
			go func() { _, _ = io.Copy(io.Discard, c) }()
			all = append(all, c)
			for i := range uint32(perConn) {
				st := stream{c, 2*i + 1}
				switch rng.IntN(8) {
				case 0, 1:
					c.request(st.id, true, "GET", "/large")
					left = append(left, st)
					continue
				case 2:
					c.request(st.id, true, "GET", fmt.Sprint("/large?blocks=", i))
					blocked++
				case 3:
					c.request(st.id, true, "GET", fmt.Sprint("/timed?blocks=", i))
					blocked++
				case 4:
					c.request(st.id, true, []string{"GET", "HEAD"}[rng.IntN(2)], fmt.Sprint("/unchanged?blocks=", i))
					blocked++
				case 5:
					c.request(st.id, true, "GET", "/stream")
					blocked++
				case 6:
					c.request(st.id, true, "GET", "/std") // its Write waits
				default:
					c.request(st.id, false, "POST", "/body", "content-length", fmt.Sprint(bodySize), "expect", "100-continue") // without expect the body would be gathered
					if rng.IntN(2) == 0 {
						break // the rest of the body never arrives
					}
					_ = c.frame(0, 0, st.id, make([]byte, bodySize/2)...)
					_ = c.frame(0, 1, st.id, make([]byte, bodySize/2)...)
					blocked++
				}
				others = append(others, st)
			}
		}
		soon(t, "all actions have begun", func() bool { return entered.Load() == blocked && memory().HeldFor["output"] >= int64(len(left))*size })
		rng.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
		ended := left[:rng.IntN(len(left)+1)]
		for _, st := range append(others, ended...) {
			_ = st.c.frame(3, 0, st.id, 0, 0, 0, 8)
		}
		last := all[rng.IntN(len(all))] // its connection ends, too
		_ = last.Close()
		stay := 0
		for _, st := range left[len(ended):] {
			if st.c != last {
				stay++
			}
		}
		output := int64(stay) * size
		limit := time.Now().Add(patience)
		for m := memory(); m.HeldFor["output"] != output || m.HeldFor["body"] != bodies.Load(); m = memory() {
			if time.Now().After(limit) {
				t.Fatalf("seed %d, round %d: got %v is held, where %d of answers and %d of bodies are", seed, round, m.HeldFor, output, bodies.Load())
			}
		}
		for _, st := range left[len(ended):] { // the client takes these answers
			_ = st.c.frame(8, 0, st.id, 0, 0x7f, 0xff, 0xff)
		}
		soon(t, "the rest is read", func() bool { return memory().HeldFor["output"] == 0 })
		next := make(chan bool)
		close(*gate.Swap(&next))
		for _, c := range all {
			_ = c.Close()
		}
		soon(t, "all is given back", func() bool { return entered.Load() == 0 && memory().Held == 0 })
	}
}

// The memory of a request's body is not held for a streamed answer that is made without it, nor together with a complete
// answer in memory, while a client does not read these.
func TestBodyIsReleasedBeforeAnswer(t *testing.T) {
	onLoop(t)
	const bodySize, size = 30_000, 20_000
	config := dunlin.Config{Engine: dunlin.EngineLoop, Limits: dunlin.Limits{Memory: 256 << 20}, Timeouts: dunlin.Timeouts{Write: time.Hour}}
	s := startH2(t, config, func(app *dunlin.App) {
		read := func(answer func() dunlin.Response) dunlin.Action {
			return func(r *dunlin.Request) dunlin.Response {
				if b, err := r.Bytes(); err != nil || len(b) != bodySize {
					return dunlin.Text(fmt.Sprint(len(b), err))
				}
				return answer()
			}
		}
		app.Post("/stream", read(func() dunlin.Response {
			return dunlin.Stream("", func(w io.Writer) error {
				_, err := w.Write(make([]byte, size))
				return err
			})
		}))
		app.Post("/bytes", read(func() dunlin.Response { return dunlin.Bytes("", make([]byte, size)) }))
		unpack := func(r io.Reader) (io.Reader, error) { return io.LimitReader(zeros{}, bodySize), nil }
		app.Post("/decoded", func(r *dunlin.Request) dunlin.Response {
			if err := r.DecodeBody(unpack); err != nil {
				return dunlin.Error(err)
			}
			return dunlin.Bytes("", make([]byte, size))
		})
	})
	expect := map[int]string{bodySize: "100-continue"}
	for path, body := range map[string]int{"/stream": bodySize, "/bytes": bodySize, "/decoded": 100} {
		t.Run(path[1:], func(t *testing.T) {
			c := newH2Conn(t, s.addr)
			c.window(0)
			defer c.Close()
			go func() { _, _ = io.Copy(io.Discard, c) }()
			c.request(1, false, "POST", path, "content-length", fmt.Sprint(body), "expect", expect[body]) // without expect the body would be gathered
			_ = c.frame(0, 0, 1, make([]byte, body/2)...)
			_ = c.frame(0, 1, 1, make([]byte, body/2)...)
			soon(t, "nothing but the answer is held", func() bool {
				m := s.app.Stats().Memory
				output := m.HeldFor["output"]
				return output >= size && output <= 2*size && m.HeldFor["body"] == 0
			})
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
