//go:build linux

package loophttp_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/suite"
)

// A client that keeps the server waiting is disconnected. It gets an answer if it has begun a request.
func TestLoopDeadlines(t *testing.T) {
	head := func(c *dunlin.Config) *time.Duration { return &c.Timeouts.Head }
	body := func(c *dunlin.Config) *time.Duration { return &c.Timeouts.Body }
	idle := func(c *dunlin.Config) *time.Duration { return &c.Timeouts.Idle }
	for _, c := range []struct {
		name  string
		limit func(*dunlin.Config) *time.Duration
		send  string
		want  []string // expected status codes
	}{
		{"nothing sent", idle, "", nil},
		{"idle after an answer", idle, suite.Request("GET /probe"), []string{"200"}},
		{"idle after two", idle, suite.Request("GET /probe") + suite.Request("POST /read", "", "body"), []string{"200", "200"}},
		{"within a request line", head, "GET /pro", []string{"408"}},
		{"within a field", head, "GET /probe HTTP/1.1\r\nHos", []string{"408"}},
		{"within the second head", head, suite.Request("GET /probe") + "GET", []string{"200", "408"}},
		{"within a small body", body, suite.Request("POST /read", "Content-Length: 10") + "half", []string{"408"}},
		{"within a chunk", body, suite.Request("POST /read", "Transfer-Encoding: chunked") + "5\r\nha", []string{"408"}},
		{"before a trailer", body, suite.Request("POST /read", "Transfer-Encoding: chunked") + "0\r\n", []string{"408"}},
		{"within a large body", body, suite.Request("POST /read", "Content-Length: 200000") + "beginning", []string{"408"}},
		{"within a large body, after an answer", body, suite.Request("GET /probe") + suite.Request("POST /read", "Content-Length: 200000") + "beginning", []string{"200", "408"}},
		{"within large chunks", body, suite.Request("POST /read", "Transfer-Encoding: chunked") + "20000\r\n" + strings.Repeat("x", 100<<10), []string{"408"}},
		{"asked for a body", body, suite.Request("POST /read", "Content-Length: 10", "Expect: 100-continue"), []string{"100", "408"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // they wait
			// The client must connect and send within this time.
			suite.Unhurried(t, 50*time.Millisecond, func(d time.Duration) error {
				const never = time.Hour
				config := dunlin.Config{Timeouts: dunlin.Timeouts{Head: never, Body: never, Idle: never}}
				*c.limit(&config) = d
				return cutOff(t, config, d, c.send, c.want)
			})
		})
	}
}

// cutOff sends bytes and then waits. It checks the answers until the server disconnects after the time d.
func cutOff(t *testing.T, config dunlin.Config, d time.Duration, send string, want []string) error {
	app, addr, _ := suite.StartLoop(t, config, func(app *dunlin.App) {
		app.Post("/read", func(r *dunlin.Request) dunlin.Response {
			if _, err := io.Copy(io.Discard, r.Body()); err != nil {
				return dunlin.Error(err)
			}
			return dunlin.NoContent().Status(200)
		})
	})
	began := time.Now()
	conn := suite.Dial(t, addr)
	_, _ = io.WriteString(conn, send) // the answers show a failure
	all, err := io.ReadAll(conn)      // until the server closes
	var got []string
	for _, line := range strings.SplitAfter(string(all), "HTTP/1.1 ")[1:] {
		got = append(got, line[:3])
	}
	if len(all) == 0 && len(want) > 0 && (err == nil || suite.Ended(err)) && time.Since(began) >= d/2 { // the loop's clock may be slightly late
		return suite.Late(fmt.Sprintf("%v, cut off before it has sent %q", err, send))
	}
	if err != nil || strings.Join(got, " ") != strings.Join(want, " ") {
		return fmt.Errorf("answers %v, want %v, %v:\n%s", got, want, err, all)
	}
	if strings.Contains(string(all), " 408 ") {
		suite.WantContains(t, "the answer", string(all), "Connection: close\r\n")
		what, reason := fmt.Sprintf("the request head did not arrive completely within %v", d), "slow-head"
		if config.Timeouts.Body == d {
			what, reason = fmt.Sprintf("the request body arrived at fewer than 256 bytes a second over %v", d), "slow-body"
		}
		suite.WantContains(t, "the answer", string(all), what)
		if n := app.Stats().Shed[reason]; n != 1 {
			return fmt.Errorf("%d of %s counted, want 1", n, reason)
		}
	}
	suite.Soon(t, "the connection is closed", func() bool { _ = conn.Close(); return app.Stats().Connections.Open == 0 })
	return nil
}

// A client that does not read its answer is disconnected.
func TestLoopWriteDeadline(t *testing.T) {
	large := strings.Repeat("x", 32<<20) // more than socket buffers hold
	for _, kind := range []string{"/text", "/stream"} {
		app, addr, _ := suite.StartLoop(t, dunlin.Config{Timeouts: dunlin.Timeouts{Write: 50 * time.Millisecond}}, func(app *dunlin.App) {
			app.Get("/text", suite.Text(large))
			app.Get("/stream", suite.Constant(dunlin.Stream("text/plain", func(w io.Writer) error {
				_, err := io.WriteString(w, large)
				return err
			})))
		})
		conn := suite.Dial(t, addr)
		suite.Send(t, conn, suite.Request("GET "+kind))
		br := bufio.NewReader(conn)
		if line, err := br.ReadString('\n'); err != nil || line != "HTTP/1.1 200 OK\r\n" {
			t.Fatalf("%s: got %q, %v", kind, line, err)
		}
		suite.Soon(t, kind+": the connection is closed", func() bool {
			s := app.Stats()
			return s.Connections.Open == 0 && s.Memory.Pending == 0
		})
	}
}

// During a drain, the app announces the closing of connections with their answers, closes connections without a request, and
// finishes blocked actions.
func TestLoopDrain(t *testing.T) {
	g := suite.NewGate()
	app, addr, _ := suite.StartLoop(t, dunlin.Config{}, func(app *dunlin.App) {
		app.Get("/gate", func(*dunlin.Request) dunlin.Response { g.Pass(); return dunlin.Text("through") })
	})
	idle, fresh, blocked, partial := suite.Dial(t, addr), suite.Dial(t, addr), suite.Dial(t, addr), suite.Dial(t, addr)
	idleReader := bufio.NewReader(idle)
	suite.Send(t, idle, suite.Request("GET /probe"))
	suite.Answered(t, idleReader, 200, "probe")
	suite.Send(t, blocked, suite.Request("GET /gate")+suite.Request("GET /probe"))
	g.Await(t)
	suite.Send(t, partial, "GET /probe HTTP/1.1\r\n")
	suite.Soon(t, "all are accepted", func() bool { return app.Stats().Connections.Open == 4 })
	down := make(chan error, 1)
	go func() { down <- app.Shutdown(t.Context()) }()
	suite.WantEnd(t, idleReader)
	suite.WantEnd(t, bufio.NewReader(fresh))
	select {
	case err := <-down:
		t.Fatalf("Shutdown did not wait: %v", err)
	default:
	}
	g.Open <- struct{}{}
	for _, c := range []struct {
		conn       net.Conn
		rest, want string
	}{{blocked, "", "through"}, {partial, "Host: h\r\n\r\n", "probe"}} {
		if c.rest != "" {
			suite.Send(t, c.conn, c.rest)
		}
		br := bufio.NewReader(c.conn)
		got, err := suite.ReadAnswer(br, "GET")
		if err != nil || !strings.HasSuffix(got, "\n\n"+c.want) || !strings.Contains(got, "\nConnection: close\n") {
			t.Errorf("got %q, %v; want the answer %q and Connection: close", got, err, c.want)
		}
		suite.WantEnd(t, br)
		_ = c.conn.Close() // the server lingers for unread bytes
	}
	if err := <-down; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
}
