//go:build linux

package loophttp_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/invariants"
	"github.com/dunlinhttp/dunlin/internal/suite"
)

// tokenAnswer returns an answer with the request's token in a header and in a body of size bytes.
func tokenAnswer(token string, size int) dunlin.Response {
	return dunlin.Bytes("text/plain", tokenBody(token, size)).Header("X-Token", token)
}

// tokenBody returns a body that is unique to the token.
func tokenBody(token string, size int) []byte {
	return bytes.Repeat([]byte(token+" "), size/(len(token)+1)+1)[:size]
}

// blockFor blocks an action, like a call of another service.
func blockFor(d time.Duration) {
	done := make(chan struct{})
	time.AfterFunc(d, func() { close(done) })
	<-done
}

func registerStress(app *dunlin.App) {
	suite.MarkBlocking(app, "/worker/")
	for _, kind := range []struct {
		name string
		act  func(r *dunlin.Request, size int) // runs before the answer
	}{
		{"quick", func(*dunlin.Request, int) {}},
		{"sometimes", func(_ *dunlin.Request, size int) { // taken over, but not learned
			if size%64 == 0 {
				blockFor(2 * time.Millisecond)
			}
		}},
		{"blocking", func(*dunlin.Request, int) { blockFor(time.Millisecond) }},
		{"worker", func(*dunlin.Request, int) { runtime.Gosched() }},
		{"panic", func(r *dunlin.Request, _ int) { panic(r.Header("X-Token")) }},
		{"goexit", func(*dunlin.Request, int) { runtime.Goexit() }},
		{"abort", func(*dunlin.Request, int) { panic(http.ErrAbortHandler) }},
		{"context", func(r *dunlin.Request, _ int) {
			timer := time.NewTimer(time.Millisecond)
			defer timer.Stop()
			select {
			case <-r.Context().Done():
			case <-timer.C:
			}
		}},
	} {
		app.Get("/"+kind.name+"/{size}", func(r *dunlin.Request) dunlin.Response {
			size, err := dunlin.Param[int](r, "size")
			if err != nil {
				return dunlin.Error(err)
			}
			kind.act(r, size)
			return tokenAnswer(r.Header("X-Token"), size)
		})
	}
	app.Get("/stream/{size}", func(r *dunlin.Request) dunlin.Response {
		token := r.Header("X-Token")
		size, err := dunlin.Param[int](r, "size")
		if err != nil {
			return dunlin.Error(err)
		}
		return dunlin.Stream("text/plain", func(w io.Writer) error {
			for body := tokenBody(token, size); len(body) > 0; {
				n := min(len(body), 3000)
				if _, err := w.Write(body[:n]); err != nil {
					return err
				}
				body = body[n:]
			}
			return nil
		}).Header("X-Token", token)
	})
	app.Post("/echo", func(r *dunlin.Request) dunlin.Response {
		body, err := r.Bytes()
		if err != nil {
			return dunlin.Error(err)
		}
		return dunlin.Bytes("text/plain", body).Header("X-Token", r.Header("X-Token"))
	})
	app.Post("/ignore", func(r *dunlin.Request) dunlin.Response { return tokenAnswer(r.Header("X-Token"), 10) })
	app.Recover(func(r *dunlin.Request, _ any) dunlin.Response { return tokenAnswer(r.Header("X-Token"), 20) })
}

// A stressRequest is a request and its expected answer.
type stressRequest struct {
	raw    string
	status int // 0: none, the connection is dropped
	token  string
	body   []byte
	last   bool
}

// newStressRequest makes a request of a random kind.
func newStressRequest(rng *rand.Rand, token string) stressRequest {
	size := 1 + rng.IntN(200)
	s := stressRequest{status: 200, token: token}
	get := func(kind string) stressRequest {
		s.raw = suite.Request(fmt.Sprintf("GET /%s/%d", kind, size), "X-Token: "+token)
		s.body = tokenBody(token, size)
		return s
	}
	switch rng.IntN(40) {
	case 0:
		s.status, s.last = 500, true
		s = get("goexit")
		s.token, s.body = "", []byte(`{"title":"Internal Server Error","status":500}`)
		return s
	case 1:
		s.status, s.last = 0, true
		return get("abort")
	case 2, 3:
		s = get("panic")
		s.body = tokenBody(token, 20)
		return s
	case 4, 5:
		return get("blocking")
	case 6, 7:
		return get("context")
	case 8, 9, 10:
		return get("worker")
	case 11, 12, 13:
		return get("sometimes")
	case 14, 15:
		size = rng.IntN(30_000)
		return get("stream")
	case 16:
		size = 100_000 + rng.IntN(200_000) // may exceed one write to a socket
		return get("quick")
	case 17, 18, 19, 20, 21, 22:
		path := "POST /echo"
		switch rng.IntN(4) {
		case 0:
			size = 60_000 + rng.IntN(20_000) // around the limit of gathering
		case 1:
			path = "POST /ignore"
		}
		s.body = tokenBody(token, size)
		if rng.IntN(2) == 0 {
			s.raw = suite.Request(path, "X-Token: "+token, "", string(s.body))
		} else {
			s.raw = suite.Request(path, "X-Token: "+token, "Transfer-Encoding: chunked", "", inChunks(rng, s.body))
		}
		if path == "POST /ignore" {
			s.body = tokenBody(token, 10)
		}
		return s
	}
	return get("quick")
}

func inChunks(rng *rand.Rand, body []byte) string {
	var b strings.Builder
	for len(body) > 0 {
		n := 1 + rng.IntN(len(body))
		fmt.Fprintf(&b, "%x\r\n%s\r\n", n, body[:n])
		body = body[n:]
	}
	return b.String() + "0\r\n\r\n"
}

// mayClose reports whether the connection may be closed after the answer, which then announces it: the action does not read its
// chunked body, which may be incomplete.
func (s *stressRequest) mayClose() bool {
	return strings.HasPrefix(s.raw, "POST /ignore") && strings.Contains(s.raw, "\r\nTransfer-Encoding: chunked\r\n")
}

// check reads the answer to s from br. closed reports that it is the last answer of the connection.
func (s *stressRequest) check(br *bufio.Reader) (closed bool, err error) {
	if s.status == 0 {
		if b, err := br.ReadByte(); err == nil {
			return true, fmt.Errorf("aborted, but answered: %q", b)
		}
		return true, nil
	}
	resp, err := http.ReadResponse(br, nil)
	if err != nil {
		return true, fmt.Errorf("read head: %w", err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return true, fmt.Errorf("read body: %w", err)
	}
	if resp.StatusCode != s.status || resp.Header.Get("X-Token") != s.token || !bytes.Equal(body, s.body) {
		return true, fmt.Errorf("answered with %d, token %q, %d bytes %.60q; want %d, token %q, %d bytes %.60q",
			resp.StatusCode, resp.Header.Get("X-Token"), len(body), body, s.status, s.token, len(s.body), s.body)
	}
	return resp.Close && s.mayClose(), nil
}

// A stressClient sends batches of requests over a series of connections.
type stressClient struct {
	addr string
	id   int
	rng  *rand.Rand
	conn *net.TCPConn
	br   *bufio.Reader
}

func (c *stressClient) dial() error {
	conn, err := net.Dial("tcp", c.addr)
	if err != nil {
		return err
	}
	c.conn = conn.(*net.TCPConn)
	c.br = bufio.NewReader(conn)
	return conn.SetDeadline(time.Now().Add(suite.Patience))
}

// round sends one batch and checks its answers, or disconnects in the middle.
func (c *stressClient) round(n int) error {
	if c.conn == nil {
		if err := c.dial(); err != nil {
			return err
		}
	}
	var batch []stressRequest
	var raw strings.Builder
	for i := range 1 + c.rng.IntN(8) {
		s := newStressRequest(c.rng, fmt.Sprintf("%d.%d.%d", c.id, n, i))
		batch = append(batch, s)
		raw.WriteString(s.raw)
		if s.last {
			break
		}
	}
	if c.rng.IntN(6) == 0 {
		return c.disconnect(raw.String())
	}
	halfClose := c.rng.IntN(8) == 0
	sent := make(chan struct{})
	go func(conn *net.TCPConn, seed uint64) {
		defer close(sent)
		inPieces(conn, raw.String(), seed)
		if halfClose {
			_ = conn.CloseWrite()
		}
	}(c.conn, c.rng.Uint64())
	closed := false
	for i, s := range batch {
		var err error
		if closed, err = s.check(c.br); err != nil {
			return fmt.Errorf("client %d, batch %d, answer %d of %d, to %.60q: %w", c.id, n, i+1, len(batch), s.raw, err)
		}
		if closed {
			break
		}
	}
	<-sent
	if !closed && !halfClose && !batch[len(batch)-1].last {
		return nil
	}
	rest, err := io.ReadAll(c.br)
	if len(rest) > 0 || err != nil && !isReset(err) {
		return fmt.Errorf("client %d, batch %d: after the last answer %q, %w", c.id, n, rest, err)
	}
	return c.hangUp(false)
}

// disconnect sends a part of raw, reads a part of the answers and disconnects.
func (c *stressClient) disconnect(raw string) error {
	_, err := io.WriteString(c.conn, raw[:c.rng.IntN(len(raw)+1)])
	if err == nil && c.rng.IntN(2) == 0 {
		// Only answers that arrive at once are read.
		_ = c.conn.SetReadDeadline(time.Now().Add(time.Millisecond))
		_, _ = c.conn.Read(make([]byte, 1+c.rng.IntN(500)))
	}
	return errors.Join(err, c.hangUp(c.rng.IntN(2) == 0))
}

func (c *stressClient) hangUp(reset bool) error {
	if reset {
		_ = c.conn.SetLinger(0)
	}
	err := c.conn.Close()
	c.conn = nil
	return err
}

// inPieces writes raw in pieces of random length.
func inPieces(conn io.Writer, raw string, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	for len(raw) > 0 {
		n := 1 + rng.IntN(len(raw))
		if _, err := io.WriteString(conn, raw[:n]); err != nil {
			return // the answers show the failure
		}
		raw = raw[n:]
	}
}

// Under a mix of all kinds of requests, each answer belongs to its request, and no state remains after the clients have gone.
func TestLoopStress(t *testing.T) {
	clients, rounds := 24, 300
	if invariants.Enabled {
		clients, rounds = 16, 120
	}
	app, addr, logs := suite.StartLoop(t, dunlin.Config{}, registerStress)
	suite.Exchange(t, addr, false, suite.Request("GET /quick/1", "X-Token: t"))
	suite.Soon(t, "the first connection is closed", func() bool { return app.Stats().Connections.Open == 0 })
	goroutines := runtime.NumGoroutine()
	var wg sync.WaitGroup
	for id := range clients {
		wg.Go(func() {
			c := &stressClient{addr: addr, id: id, rng: rand.New(rand.NewPCG(uint64(id), 1))}
			for n := range rounds {
				if err := c.round(n); err != nil {
					t.Error(err)
					break
				}
			}
			if c.conn != nil {
				_ = c.hangUp(false)
			}
		})
	}
	wg.Wait()
	suite.Soon(t, "nothing is open or held", func() bool {
		s := app.Stats()
		return s.Connections.Open == 0 && s.Actions.Away == 0 && s.Memory.Pending == 0 && s.Actions.Working == 0 && s.Actions.Queued == 0
	})
	s := app.Stats()
	if s.Actions.Takeovers == 0 {
		t.Error("no takeovers: the test does not reach its subject")
	}
	suite.Soon(t, "all goroutines have ended, also idle workers: "+strconv.Itoa(goroutines)+" before", func() bool {
		return runtime.NumGoroutine() <= goroutines
	})
	suite.Exchange(t, addr, false, suite.Request("GET /quick/1", "X-Token: t"))
	suite.WantLacks(t, "log", logs.String(), "engine: panic")
}
