package suite

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// slowAnswer and slowBodySize are the sizes of the response and of the body of a slow client, in bytes.
const slowAnswer, slowBodySize = 1 << 20, 4 << 20

// startSlow serves responses and bodies for slow clients, and a critical route.
func startSlow(t *testing.T, engine dunlin.Engine, limit dunlin.ByteSize) (app *dunlin.App, addr string, logs *LogBuffer) {
	t.Helper()
	addr, logs = Start(t, dunlin.Config{Engine: engine, Limits: dunlin.Limits{Memory: limit}}, func(a *dunlin.App) {
		app = a
		a.Get("/probe", Text("probe"))
		a.Get("/critical", Text("critical")).Critical()
		a.Get("/large", func(*dunlin.Request) dunlin.Response {
			return dunlin.Bytes("", bytes.Repeat([]byte("x"), slowAnswer)) // a separate allocation for each response
		})
		a.Post("/length", func(r *dunlin.Request) dunlin.Response {
			body, err := r.Bytes()
			if err != nil {
				return dunlin.Error(err)
			}
			return dunlin.Text(fmt.Sprint(len(body)))
		})
	})
	return app, addr, logs
}

// slowReader requests a large response and reads little of it.
func slowReader(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn := Dial(t, addr)
	if err := TCP(conn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	Send(t, conn, Request("GET /large"))
	return conn
}

// slowSender sends half of a large body, as far as the server accepts it.
func slowSender(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn := Dial(t, addr)
	Send(t, conn, fmt.Sprintf("POST /length HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", slowBodySize))
	go func() { _, _ = conn.Write(make([]byte, slowBodySize/2)) }() // the body may be refused
	return conn
}

// Slow clients that could fill the memory limit many times do not affect other clients, on open connections and on new ones.
func TestSlowClientsDoNotDelayOthers(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		for _, limit := range []dunlin.ByteSize{0, 64 << 20} {
			t.Run(fmt.Sprint("limit ", limit), func(t *testing.T) {
				app, addr, logs := startSlow(t, engine, limit)
				var kept []net.Conn
				for range 20 {
					conn := Dial(t, addr)
					probe(t, conn)
					kept = append(kept, conn)
				}
				slow := 40
				if secured(t) {
					slow = 12 // each client costs decryption, too
				}
				var readers, senders []net.Conn
				for range slow {
					readers = append(readers, slowReader(t, addr))
					senders = append(senders, slowSender(t, addr))
				}
				Soon(t, "much is held, or was", func() bool { return app.Stats().Memory.HeldPeak > 6<<20 })
				buf := make([]byte, 1200)
				for round := range 20 {
					// The slow clients continue: they are never silent, and may be evicted.
					for i := range slow {
						_ = readers[i].SetReadDeadline(time.Now().Add(time.Microsecond))
						_, _ = readers[i].Read(buf)
						_ = senders[i].SetWriteDeadline(time.Now().Add(time.Microsecond))
						_, _ = senders[i].Write(buf[:30])
					}
					if err := kept[round].SetDeadline(time.Now().Add(Patience)); err != nil {
						t.Fatal(err)
					}
					probe(t, kept[round])
					fresh := Dial(t, addr)
					probe(t, fresh)
					Send(t, fresh, Request("GET /critical"))
					Answered(t, bufio.NewReader(fresh), 200, "critical")
					_ = fresh.Close()
				}
				s := app.Stats()
				if s.Shed["accept-paused"]+s.Shed["idle-dropped"]+s.Connections.AcceptPauses != 0 || s.Connections.AcceptPaused != 0 {
					t.Errorf("others were made to pay: %v, %+v", s.Shed, s.Connections)
				}
				if m := s.Memory; m.Held > m.Budget+m.Ending+slowAnswer {
					t.Errorf("%d bytes held, %d of them by holders that are being evicted, of a budget of %d", m.Held, m.Ending, m.Budget)
				}
				if text := logs.String(); strings.Contains(text, "ERROR") {
					t.Errorf("logged as failures of the service:\n%.2000s", text)
				}
			})
		}
	})
}

// Half-sent small bodies from one address fill the budget. New clients of that address are still served, several at once:
// senders of bodies are evicted for their handshakes.
func TestHalfSentBodiesDoNotDelayNewClients(t *testing.T) {
	OnBothEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		app, addr := startSmall(t, engine)
		const size = 60_000
		half := fmt.Sprintf("POST /length HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", size, strings.Repeat("x", size/2))
		var senders []net.Conn
		begin := func(n int) {
			for range n {
				conn := Dial(t, addr)
				_, _ = io.WriteString(conn, half) // the body may be refused
				senders = append(senders, conn)
			}
		}
		begin(smallBudget / size)
		Soon(t, "some are refused", func() bool {
			begin(1)
			return app.Stats().Shed["largest-holder"] > 0
		})
		for range 5 {
			begin(8)
			for _, conn := range senders {
				_, _ = io.WriteString(conn, "x") // the body may be refused
			}
			var all sync.WaitGroup
			for range 8 {
				fresh := Dial(t, addr)
				all.Go(func() {
					defer fresh.Close()
					_, err := io.WriteString(fresh, Request("POST /length", "", "body"))
					got := ""
					if err == nil {
						got, err = ReadAnswer(bufio.NewReader(fresh), "POST")
					}
					if err != nil || !strings.HasSuffix(got, "\n\n4") {
						t.Errorf("a new client got %q, %v", got, err)
					}
				})
			}
			all.Wait()
		}
	})
}

// The alerts of docs/DEPLOY.md for slow readers fire before a request is refused or evicted.
func TestSlowReadersAreReported(t *testing.T) {
	app, addr, _ := startSlow(t, dunlin.EngineAuto, 0)
	if app.Stats().Connections.PerLoop == nil {
		t.Skip("answers that wait are counted on the loop engine")
	}
	const slow = 10
	for range slow {
		slowReader(t, addr)
	}
	Soon(t, "they show", func() bool {
		m := app.Stats().Memory
		return m.ReadPaused == slow && m.Pending >= slow*slowAnswer && m.Holders == slow && len(m.Largest) == 5
	})
	s := app.Stats()
	for _, x := range s.Memory.Largest {
		if x.Held < slowAnswer || x.For <= 0 || x.Free <= 0 || !strings.HasPrefix(x.Remote, "127.0.0.1:") {
			t.Errorf("%+v holds much", x)
		}
	}
	if s.Memory.Fair < 64<<10 || s.Memory.Fair > s.Memory.Budget/2 || s.Shed["largest-holder"] != 0 {
		t.Errorf("got %+v, %v", s.Memory, s.Shed)
	}
	for name := range map[string]bool{"readPaused": true, "largest": true, "fair": true, "waiting": true, "acceptPausedNs": true} {
		if !strings.Contains(s.String(), `"`+name+`":`) {
			t.Errorf("the snapshot as JSON has no %s", name)
		}
	}
}

// A handler's write of a large array charges the client for the pending output, not for the array.
func TestWrittenOutputIsCharged(t *testing.T) {
	OnBothEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		const part = 6 << 20
		array := make([]byte, 64<<20)
		var app *dunlin.App
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(a *dunlin.App) {
			app = a
			a.Mount("/large", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(array[:part]) }))
			a.Get("/stream", func(*dunlin.Request) dunlin.Response {
				return dunlin.Stream("", func(w io.Writer) error { _, err := w.Write(array[:part]); return err })
			})
		})
		for i, path := range []string{"/large", "/stream"} {
			conn := Dial(t, addr)
			if err := TCP(conn).SetReadBuffer(4 << 10); err != nil {
				t.Fatal(err)
			}
			Send(t, conn, Request("GET "+path))
			Soon(t, path+" waits for its client", func() bool {
				s := app.Stats()
				return s.Actions.InFlight == i+1 && (engine == dunlin.EngineStd || s.Memory.Pending > int64(i)*part)
			})
		}
		if held := app.Stats().Memory.Held; held > 3*part {
			t.Errorf("%d bytes are held for two clients that are sent %d each", held, part)
		}
	})
}

// The alerts for half-sent bodies: the memory held, its holders, and evictions.
func TestSlowBodiesAreReported(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		app, addr, _ := startSlow(t, engine, 64<<20)
		for range 8 {
			slowSender(t, addr)
		}
		Soon(t, "the budget is nearly used up", func() bool {
			m := app.Stats().Memory
			return m.HeldFor["body"] > m.Budget/2 && len(m.Largest) > 0
		})
		Soon(t, "the largest holders are evicted", func() bool { return app.Stats().Shed["largest-holder"] > 0 })
	})
}

// The alert for a limit on connections: the time since the last accept.
func TestAcceptPausesAreReported(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		var app *dunlin.App
		logs := new(LogBuffer)
		addr, _ := Start(t, dunlin.Config{Engine: engine, Limits: dunlin.Limits{MaxConnections: 1}, Logger: logs.Logger(slog.LevelWarn)}, func(a *dunlin.App) {
			app = a
			a.Get("/probe", Text("probe"))
		})
		first := Dial(t, addr)
		probe(t, first)
		second := Dial(t, addr) // in the accept queue
		Soon(t, "nothing is accepted", func() bool { return app.Stats().Connections.AcceptPaused > 0 })
		if s := app.Stats(); s.Connections.AcceptPauses == 0 || s.Shed["accept-paused"] == 0 {
			t.Errorf("got %+v, %v", s.Connections, s.Shed)
		}
		Soon(t, "it is logged", func() bool { return strings.Contains(logs.String(), "accepting pauses") })
		_ = first.Close()
		probe(t, second)
		Soon(t, "the second is the only one", func() bool {
			c := app.Stats().Connections
			return c.Accepted == 2 && c.Open == 1
		})
		_ = second.Close()
		Soon(t, "others are accepted again", func() bool { return app.Stats().Connections.AcceptPaused == 0 })
	})
}

// A scarceListener reports missing descriptors for new connections while it is switched on.
type scarceListener struct {
	net.Listener
	scarce atomic.Bool
}

func (l *scarceListener) Accept() (net.Conn, error) {
	if l.scarce.Load() {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: l.Addr(), Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return l.Listener.Accept()
}

// The alert for exhausted descriptors, on net/http's server: it accepts again when a connection has closed, or a second later.
func TestDescriptorExhaustionIsReported(t *testing.T) {
	ln := &scarceListener{Listener: Listen(t)}
	ln.scarce.Store(true)
	var app *dunlin.App
	logs := new(LogBuffer)
	addr, _ := StartOn(t, dunlin.Config{Engine: dunlin.EngineStd, Logger: logs.Logger(slog.LevelWarn)}, ln, func(a *dunlin.App) {
		app = a
		a.Get("/probe", Text("probe"))
	})
	Soon(t, "nothing is accepted", func() bool { return app.Stats().Connections.AcceptPaused > 0 })
	Soon(t, "it is logged", func() bool { return strings.Contains(logs.String(), "accepting pauses") })
	if s := app.Stats(); s.Connections.AcceptPauses != 1 || s.Shed["accept-paused"] == 0 {
		t.Errorf("got %+v, %v", s.Connections, s.Shed)
	}
	ln.scarce.Store(false)
	Soon(t, "accepting continues without new clients", func() bool { return app.Stats().Connections.AcceptPaused == 0 })
	probe(t, Dial(t, addr))
	if s := app.Stats(); s.Connections.AcceptPauses != 1 || s.Connections.AcceptPaused != 0 {
		t.Errorf("got %+v", s.Connections)
	}
}

// Actions that use large bodies cannot be evicted. Small requests are answered at once meanwhile, and further large bodies
// wait.
func TestLargeBodiesInUseLeaveRoomForSmallRequests(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		const large = 5
		leave, entered := make(chan struct{}), make(chan struct{}, large)
		var app *dunlin.App
		addr, _ := Start(t, dunlin.Config{Engine: engine, Limits: dunlin.Limits{Memory: smallMemory}}, func(a *dunlin.App) {
			app = a
			a.Post("/hold", func(r *dunlin.Request) dunlin.Response {
				if _, err := r.Bytes(); err != nil {
					return dunlin.Error(err)
				}
				entered <- struct{}{}
				<-leave
				return dunlin.NoContent()
			})
			a.Post("/length", func(r *dunlin.Request) dunlin.Response {
				body, err := r.Bytes()
				if err != nil {
					return dunlin.Error(err)
				}
				return dunlin.Text(fmt.Sprint(len(body)))
			})
		})
		var holding []net.Conn
		for range large {
			conn := Dial(t, addr)
			Send(t, conn, fmt.Sprintf("POST /hold HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", 300<<10))
			go func() { _, _ = conn.Write(make([]byte, 300<<10)) }()
			holding = append(holding, conn)
		}
		const fit = smallBudget * 3 / 4 / (301 << 10)
		for range fit {
			Await(t, "an action with a large body", entered)
		}
		Soon(t, "the others wait", func() bool { return app.Stats().Memory.Waiting == large-fit })
		Soon(t, "the waiting requests hold little", func() bool { return heldBeyond(app, littleHeld) == fit })
		perConn := 1
		if secured(t) {
			perConn = 5 // the timeout covers the handshakes
		}
		for range 50 / perConn {
			conn := Dial(t, addr)
			in := bufio.NewReader(conn)
			for range perConn {
				Send(t, conn, Request("POST /length", "", strings.Repeat("x", 40<<10)))
				Answered(t, in, 200, fmt.Sprint(40<<10))
			}
			_ = conn.Close()
		}
		close(leave)
		for range large - fit {
			Await(t, "an action that has waited", entered)
		}
		for _, conn := range holding {
			if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || resp.StatusCode != http.StatusNoContent {
				t.Errorf("one that waited: got %v, %v", resp, err)
			}
		}
	})
}

// littleHeld is the memory that each client may hold, in bytes: the head and a body of 64 KiB that arrives in pieces.
const littleHeld = 80 << 10

// heldBeyond returns the number of clients that hold more than limit bytes.
func heldBeyond(app *dunlin.App, limit int64) (n int) {
	for _, h := range app.Stats().Memory.Largest {
		if h.Held > limit {
			n++
		}
	}
	return n
}

// A small body that arrives in pieces is charged once, also if its action has begun before the body is complete.
func TestBodyInPiecesIsChargedOnce(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		const size, here = 64 << 10, 40 << 10
		var app *dunlin.App
		addr, _ := Start(t, dunlin.Config{Engine: engine, Limits: dunlin.Limits{Memory: smallMemory}}, func(a *dunlin.App) {
			app = a
			a.Post("/length", func(r *dunlin.Request) dunlin.Response {
				body, err := r.Bytes()
				if err != nil {
					return dunlin.Error(err)
				}
				if n := bytes.Count(body, []byte("x")); n != len(body) {
					return dunlin.Text(fmt.Sprintf("%d of %d", n, len(body)))
				}
				return dunlin.Text(fmt.Sprint(len(body)))
			})
		})
		conn := Dial(t, addr)
		in := bufio.NewReader(conn)
		for range 3 { // with reused memory
			Send(t, conn, fmt.Sprintf("POST /length HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", size))
			Send(t, conn, strings.Repeat("x", here))
			Soon(t, "the action waits for the rest, with little", func() bool {
				m := app.Stats().Memory
				return m.HeldFor["body"] > 0 && m.Held <= littleHeld
			})
			Send(t, conn, strings.Repeat("x", size-here))
			Answered(t, in, 200, fmt.Sprint(size))
		}
		Soon(t, "nothing is held", func() bool { return app.Stats().Memory.Held == 0 })
	})
}

// A small body that reuses the memory of earlier large ones is not treated as a large one when memory is short.
func TestSmallBodyAfterLargeOnes(t *testing.T) {
	OnBothEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		const large, less = 60_000, 1 << 10
		h := startHolding(t, engine, smallBudget*3/4+5_000)
		before := h.app.Stats().Memory.HeldFor["body"]
		conn := Dial(t, h.addr)
		in := bufio.NewReader(conn)
		for range 10 {
			Send(t, conn, Request("POST /held", "", strings.Repeat("x", large)))
			if length, n := heldNow(t, in); length != large || engine == dunlin.EngineStd && n-before < large {
				t.Fatalf("%d bytes are held for a body of %d", n-before, length)
			}
			for _, body := range []string{"Content-Length: 4\r\n\r\nbody", "Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n"} {
				Send(t, conn, "POST /held HTTP/1.1\r\nHost: x\r\n"+body)
				if length, n := heldNow(t, in); length != 4 || n-before > less {
					t.Fatalf("%d bytes are held for a body of %d", n-before, length)
				}
			}
		}
	})
}

// heldNow reads the response to POST /held: the length of the body, and the bytes of all bodies held with it.
func heldNow(t *testing.T, in *bufio.Reader) (length int, held int64) {
	t.Helper()
	got, err := ReadAnswer(in, "POST")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(got[strings.LastIndexByte(got, '\n')+1:], "%d %d", &length, &held); err != nil {
		t.Fatalf("%q: %v", got, err)
	}
	return length, held
}

// A client disconnects while its body waits for memory. Its memory is released at once.
func TestHangupWhileBodyWaits(t *testing.T) {
	const size = 600 << 10
	for _, how := range []string{"resets", "finishes"} {
		t.Run(how, func(t *testing.T) {
			OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
				if engine == dunlin.EngineStd && runtime.GOOS != "linux" {
					t.Skip("net/http's connections are asked on Linux only")
				}
				h := startHolding(t, engine, size)
				second := Dial(t, h.addr)
				Send(t, second, fmt.Sprintf("POST /hold HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", size, strings.Repeat("x", 100<<10)))
				Soon(t, "the second waits", func() bool { return h.app.Stats().Memory.Waiting == 1 })
				tcp := second
				if over, ok := second.(interface{ NetConn() net.Conn }); ok {
					tcp = over.NetConn()
				}
				if how == "resets" {
					if err := TCP(tcp).SetLinger(0); err != nil {
						t.Fatal(err)
					}
				}
				_ = tcp.Close()
				if err := Await(t, "the end of the wait", h.failed); !strings.Contains(err.Error(), "closed during the request body") {
					t.Errorf("reading the body: %v", err)
				}
				if s := h.app.Stats(); s.Memory.Waiting != 0 || s.Memory.Refused != 0 || s.Shed["no-memory"] != 0 {
					t.Errorf("got %+v, %v", s.Memory, s.Shed)
				}
				h.release()
				if resp, err := http.ReadResponse(bufio.NewReader(h.first), nil); err != nil || resp.StatusCode != http.StatusNoContent {
					t.Errorf("the first: got %v, %v", resp, err)
				}
			})
		})
	}
}

// A holding is a server with little memory. Its action at POST /hold holds the body of the request, and the action at POST
// /held reports the memory held.
type holding struct {
	app     *dunlin.App
	addr    string
	first   net.Conn   // its request holds most of the budget until release
	failed  chan error // results of reading another body
	release func()
}

func startHolding(t *testing.T, engine dunlin.Engine, size int) *holding {
	t.Helper()
	leave, entered := make(chan struct{}), make(chan struct{}, 1)
	h := &holding{failed: make(chan error, 1), release: sync.OnceFunc(func() { close(leave) })}
	h.addr, _ = Start(t, dunlin.Config{Engine: engine, Limits: dunlin.Limits{Memory: smallMemory}}, func(a *dunlin.App) {
		h.app = a
		a.Post("/hold", func(r *dunlin.Request) dunlin.Response {
			if _, err := r.Bytes(); err != nil {
				h.failed <- err
				return dunlin.Error(err)
			}
			entered <- struct{}{}
			<-leave
			return dunlin.NoContent()
		})
		a.Post("/held", func(r *dunlin.Request) dunlin.Response {
			body, err := r.Bytes()
			if err != nil {
				return dunlin.Error(err)
			}
			return dunlin.Text(fmt.Sprint(len(body), h.app.Stats().Memory.HeldFor["body"]))
		})
	})
	t.Cleanup(h.release)
	h.first = Dial(t, h.addr)
	Send(t, h.first, Request("POST /hold", "", strings.Repeat("x", size)))
	Await(t, "the first action", entered)
	return h
}
