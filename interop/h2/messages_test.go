package h2_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// Interim answers arrive before the final one, as soon as they are made.
func TestInterimAnswers(t *testing.T) {
	st := newStage()
	onEach(t, dunlin.Config{}, st.register, func(t *testing.T, s *server) {
		p := s.dial(t)
		p.send(get(1, "/std/hints"))
		a := p.want(1, "200", "hinted")
		if got := fmt.Sprint(a.interim); got != "[103 </a.css> 103 </b.css>]" || a.fields["link"] != nil {
			t.Errorf("%s, then %v", got, a.fields)
		}
	})
}

// A client that expects 100-continue gets it when the body is read, and not if it is not read.
func TestExpectContinue(t *testing.T) {
	st := newStage()
	onEach(t, dunlin.Config{}, st.register, func(t *testing.T, s *server) {
		p := s.dial(t)
		for i, path := range []string{"/echo", "/length", "/std/echo"} {
			id := uint32(2*i + 1)
			p.send(post(id, path, "expect", "100-continue", "content-length", "4"))
			var first []string
			p.must("100 Continue", func() bool {
				if a := p.streams[id]; a != nil {
					first = slices.Clone(a.interim)
				}
				return len(first) > 0
			})
			p.body(id, "abcd", endStream)
			want := "abcd"
			if path == "/length" {
				want = "4"
			}
			if a := p.want(id, "200", want); fmt.Sprint(first, a.interim) != "[100] [100]" {
				t.Errorf("%s: got %v, %v", path, first, a.interim)
			}
		}
		p.send(post(7, "/std/refuse", "expect", "100-continue", "content-length", "4"))
		if a := p.answer(7); a.status != "418" || len(a.interim) != 0 {
			t.Errorf("%v after %v", a, a.interim)
		}
		p.send(get(9, "/hello"))
		p.want(9, "200", "hello")
	})
}

// Trailers are sent in both directions.
func TestTrailers(t *testing.T) {
	st := newStage()
	onEach(t, dunlin.Config{}, st.register, func(t *testing.T, s *server) {
		p := s.dial(t)
		p.send(post(1, "/std/trailers", "trailer", "X-Sum, X-Missing"), data(1, "abcd", 0), headers(1, endStream, block("x-sum", "17", "x-unannounced", "u")))
		a := p.answer(1)
		if body := a.body.String(); a.status != "200" || !strings.HasPrefix(body, "4 <nil> map[X-Missing:[] X-Sum:[17]") {
			t.Errorf("%v: got %q", a, body)
		}
		if got := fmt.Sprint(a.trailers); got != "map[x-said:[in time] x-unsaid:[as well]]" {
			t.Errorf("trailers %s", got)
		}
	})
}

// An answer that fails after its beginning is an error for the client, whether or not its first part arrives.
func TestAbortedAnswers(t *testing.T) {
	st := newStage()
	onEach(t, dunlin.Config{}, st.register, func(t *testing.T, s *server) {
		p := s.dial(t)
		p.send(get(1, "/std/abort"), get(3, "/hello"))
		if a := p.answer(1); !a.reset || a.ended || a.code == noError || a.body.String() != "half" {
			t.Errorf("%v: got %q", a, a.body.String())
		}
		p.want(3, "200", "hello")
	})
}

// Answers arrive while the request is still being sent.
func TestBothDirectionsConcurrently(t *testing.T) {
	st := newStage()
	onEach(t, dunlin.Config{}, st.register, func(t *testing.T, s *server) {
		p := s.dial(t)
		p.send(post(1, "/std/echo"))
		for n := 1; n <= 50; n++ {
			p.send(data(1, "ping", 0))
			p.must("the echo", func() bool { a := p.streams[1]; return a != nil && a.body.Len() == 4*n })
		}
		p.send(data(1, "", endStream))
		p.want(1, "200", strings.Repeat("ping", 50))
	})
}

// A client that resets a stream ends the context of its action, and only that.
func TestResets(t *testing.T) {
	st := newStage()
	onEach(t, dunlin.Config{}, st.register, func(t *testing.T, s *server) {
		p := s.dial(t)
		p.send(get(1, "/hold?1"))
		await(t, "the action", st.begun)
		p.send(get(3, "/hold?3"))
		await(t, "the action", st.begun)
		p.send(frame(tReset, 0, 1, u32(cancel)))
		if got := await(t, "its end", st.ended); got != "cancelled" {
			t.Errorf("it was %s", got)
		}
		p.ping("3 works?")
		select {
		case got := <-st.ended:
			t.Errorf("the other was %s, too", got)
		default:
		}
		p.close()
		await(t, "the end of the other", st.ended)
		eventually(t, "the end of the connection", func() bool { return s.Stats().Connections.Open == 0 })
		wantNothingHeld(t, s)
	})
}

// Streams beyond the limit are refused with a code that allows a retry. Streams within the limit get their answers.
func TestTooManyStreams(t *testing.T) {
	var st *stage
	onEach(t, dunlin.Config{Limits: dunlin.Limits{MaxConcurrent: 1000}}, func(app *dunlin.App) { st = newStage(); st.register(app) }, func(t *testing.T, s *server) {
		p := s.dial(t)
		p.netHTTP() // waits for SETTINGS
		p.mu.Lock()
		most := int(p.server[setStreams])
		p.mu.Unlock()
		if most < 100 || most > 1000 {
			t.Fatalf("got a limit of %d streams", most)
		}
		p.ping("settled?") // the server has the acknowledgement of its SETTINGS
		id := uint32(1)
		for range most {
			p.send(get(id, "/hold"))
			id += 2
		}
		for range most {
			await(t, "an action", st.begun)
		}
		for range 20 {
			p.send(get(id, "/hello"))
			if a := p.answer(id); !a.reset || a.code != refused && a.code != protocol {
				t.Fatalf("stream beyond the limit: got %v", a)
			}
			id += 2
		}
		st.release()
		for i := range most {
			p.want(uint32(1+2*i), "200", "held")
		}
		p.send(get(id, "/hello"))
		p.want(id, "200", "hello")
		wantNothingHeld(t, s)
	})
}

// client returns one of net/http's.
func (s *server) client(t *testing.T) *http.Client {
	t.Helper()
	tr := &http.Transport{Protocols: new(http.Protocols)}
	if s.secure {
		tr.TLSClientConfig = &tls.Config{RootCAs: s.trusted}
		tr.Protocols.SetHTTP2(true)
	} else {
		tr.Protocols.SetUnencryptedHTTP2(true)
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: patience}
}

// Requests of net/http's client get the same answers as from net/http's server.
func TestClientOfNetHTTP(t *testing.T) {
	t.Parallel()
	st := newStage()
	onEach(t, dunlin.Config{Limits: dunlin.Limits{MaxBody: 2 * large}}, st.register, func(t *testing.T, s *server) {
		c := s.client(t)
		var all sync.WaitGroup
		for i := range 60 {
			all.Go(func() {
				n := (i + 1) * 3001
				resp, err := c.Post(s.url([]string{"/echo", "/std/echo"}[i%2]), "text/plain", strings.NewReader(pattern(n)))
				if err != nil {
					t.Error(err)
					return
				}
				defer resp.Body.Close()
				if got, err := io.ReadAll(resp.Body); err != nil || string(got) != pattern(n) || resp.ProtoMajor != 2 {
					t.Errorf("%s: got %d of %d bytes, %v", resp.Proto, len(got), n, err)
				}
			})
		}
		all.Wait()
		var hints []string
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			hints = append(hints, fmt.Sprint(code, h.Get("Link")))
			return nil
		}})
		req, err := http.NewRequestWithContext(ctx, "GET", s.url("/std/hints"), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if len(hints) != 2 {
			t.Errorf("got hints %q", hints)
		}
		// The client cancels its request.
		ctx, cancel := context.WithCancel(t.Context())
		if req, err = http.NewRequestWithContext(ctx, "GET", s.url("/hold"), nil); err != nil {
			t.Fatal(err)
		}
		failed := make(chan error, 1)
		go func() { _, err := c.Do(req); failed <- err }()
		await(t, "the action", st.begun)
		cancel()
		if err := await(t, "the client's error", failed); err == nil {
			t.Error("got an answer")
		}
		if got := await(t, "the end of the action", st.ended); got != "cancelled" {
			t.Errorf("it was %s", got)
		}
	})
}
