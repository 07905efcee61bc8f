//go:build linux

package loophttp_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/suite"
)

// The answers do not depend on how a stream of requests is cut into pieces. This file checks the entire path: codec, connection
// state, gathered and streamed bodies, workers and detached drivers.

func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// registerSplit registers the routes of the streams. All actions but /ignore read the body, so that the unread rest does not
// depend on the cut.
func registerSplit(app *dunlin.App) {
	whole := func(r *dunlin.Request) dunlin.Response {
		body, err := r.Bytes()
		if err != nil {
			return dunlin.Error(err)
		}
		return dunlin.Text(fmt.Sprintf("%s %s?%s host=%s %d: %s", r.Method(), r.Path(), r.RawQuery(), r.Host(), len(body), body))
	}
	app.Handle("*", "/{rest...}", whole)
	app.Handle("*", "/read/{rest...}", func(r *dunlin.Request) dunlin.Response {
		body, err := io.ReadAll(r.Body())
		if err != nil {
			return dunlin.Error(err)
		}
		return dunlin.Bytes("text/x", body)
	})
	suite.MarkBlocking(app, "/worker/")
	app.Handle("*", "/worker/{rest...}", whole)
	app.Handle("*", "/ignore", suite.Text("ignored"))
	app.Handle("*", "/abort", func(r *dunlin.Request) dunlin.Response {
		if _, err := r.Bytes(); err != nil {
			return dunlin.Error(err)
		}
		panic(http.ErrAbortHandler)
	})
	app.Handle("*", "/stream", func(r *dunlin.Request) dunlin.Response {
		body, err := r.Bytes()
		if err != nil {
			return dunlin.Error(err)
		}
		line := fmt.Sprintf("%s %x\n", r.Query("n"), body)
		return dunlin.Stream("text/plain", func(w io.Writer) error {
			for range 3000/len(line) + 1 {
				if _, err := io.WriteString(w, line); err != nil {
					return err
				}
			}
			return nil
		})
	})
	app.Mount("/std", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil { // the same answer as the engine's if it detects the error first
			if err == io.ErrUnexpectedEOF { // the error of net/http, without a status
				err = &dunlin.ProblemDetails{Status: 400, Detail: "the connection was closed during the request body"}
			}
			problem := dunlin.Error(err)
			w.Header().Set("Content-Type", problem.Get("Content-Type"))
			w.WriteHeader(problem.StatusCode())
			_, _ = w.Write(problem.Body())
			return
		}
		w.Header().Set("X-Trailers", fmt.Sprint(r.Trailer))
		fmt.Fprintf(w, "%s %s %v %q", r.Method, r.RequestURI, r.Header, body)
	}))
	app.NotFound(whole)
	app.MethodNotAllowed(whole)
}

// comparable returns the part of the answers that must not depend on the cut: all except the date and the interim response,
// which a server may omit if the body has begun to arrive (RFC 9110, section 10.1.1).
func comparable(answers []byte) string {
	const field, value = "\r\nDate: ", len("Mon, 02 Jan 2006 15:04:05 GMT")
	var b strings.Builder
	for {
		at := bytes.Index(answers, []byte(field))
		if at < 0 || len(answers) < at+len(field)+value {
			break
		}
		b.Write(answers[:at])
		answers = answers[at+len(field)+value:]
	}
	b.Write(answers)
	return strings.ReplaceAll(b.String(), "HTTP/1.1 100 Continue\r\n\r\n", "")
}

// splitSeeds are streams of requests of all kinds.
var splitSeeds = []string{
	suite.Request("GET /a") + suite.Request("GET /b?x=y"),
	suite.Request("GET /a") + suite.Request("HEAD /b") + suite.Request("OPTIONS *") + suite.Request("DELETE /read/x") + "\r\n" + suite.Request("GET /worker/a"),
	suite.Request("GET /a%2Fb/%7Euser/caf%C3%A9?q=%zz"),
	"GET http://other.example/p HTTP/1.1\r\nHost: h\r\n\r\n" + "CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n",
	"GET /a HTTP/1.0\r\n\r\n" + suite.Request("GET /never"),
	"GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + suite.Request("GET /b", "Connection: close") + suite.Request("GET /never"),
	suite.Request("POST /a", "", "some bytes") + suite.Request("POST /read/a", "", "more bytes") + suite.Request("POST /worker/a", "", "other bytes"),
	suite.Request("POST /a", "Transfer-Encoding: chunked", "", "3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nX-Trailer: t\r\n\r\n") + suite.Request("GET /b"),
	suite.Request("POST /worker/a", "Transfer-Encoding: chunked", "", "3\r\nabc\r\n0\r\n\r\n") + suite.Request("GET /worker/b") + suite.Request("GET /b"),
	suite.Request("POST /std", "Transfer-Encoding: chunked", "Trailer: X-T", "", "3\r\nabc\r\n0\r\nX-T: t\r\n\r\n") + suite.Request("GET /std/x"),
	suite.Request("POST /ignore", "", strings.Repeat("x", 300)) + suite.Request("GET /a"),
	suite.Request("POST /a", "Expect: 100-continue", "", "waited for") + suite.Request("GET /b"),
	suite.Request("POST /read/a", "Expect: 100-continue", "Transfer-Encoding: chunked", "", "3\r\nabc\r\n0\r\n\r\n") + suite.Request("GET /b"),
	suite.Request("POST /worker/a", "Expect: 100-continue", "Transfer-Encoding: chunked", "", "3\r\nabc\r\nzz") + suite.Request("GET /never"),
	suite.Request("GET /stream?n=1") + suite.Request("POST /stream?n=2", "", "body") + suite.Request("GET /a"),
	suite.Request("GET /a") + suite.Request("GET /abort") + suite.Request("GET /never"),
	suite.Request("GET /a", "Upgrade: websocket", "Connection: Upgrade") + suite.Request("GET /b"),
	"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	// Incomplete requests.
	"GET /a HTT", "GET /a HTTP/1.1\r\nHost: h\r\n", suite.Request("GET /a") + "GET",
	suite.Request("POST /a", "Content-Length: 10") + "half", suite.Request("POST /a", "Transfer-Encoding: chunked", "", "5\r\nha"),
	suite.Request("POST /a", "Content-Length: 10", "Expect: 100-continue") + "half", suite.Request("POST /worker/a", "Content-Length: 10") + "half",
	// Request smuggling: attempts to make the server read a second request from the first.
	suite.Request("POST /a", "Content-Length: 5", "Transfer-Encoding: chunked", "", "0\r\n\r\n") + suite.Request("GET /smuggled"),
	suite.Request("POST /a", "Content-Length: 5", "Content-Length: 6") + suite.Request("GET /smuggled"),
	suite.Request("POST /a", "Content-Length: +5") + suite.Request("GET /smuggled"),
	suite.Request("POST /a", "Transfer-Encoding: xchunked") + suite.Request("GET /smuggled"),
	suite.Request("POST /a", "Transfer-Encoding: chunked, chunked") + suite.Request("GET /smuggled"),
	suite.Request("POST /a", "Transfer-Encoding : chunked") + suite.Request("GET /smuggled"),
	suite.Request("POST /a", "Transfer-Encoding: chunked", "", "5\r\nabc\r\n0\r\n\r\n") + suite.Request("GET /smuggled"),
	suite.Request("POST /a", "Transfer-Encoding: chunked", "", "3\r\nabcX0\r\n\r\n") + suite.Request("GET /smuggled"),
	suite.Request("POST /a", "Transfer-Encoding: chunked", "", "0\r\nContent-Length: 9\r\n\r\n") + suite.Request("GET /smuggled"),
	"GET /a HTTP/1.1\nHost: h\n\n" + suite.Request("GET /smuggled"),
	"GET /a HTTP/1.1\r\nHost: h\r\n folded\r\n\r\n" + suite.Request("GET /smuggled"),
	"GET /a HTTP/1.1\r\nHost: h\r\nX: a\rb\r\n\r\n" + suite.Request("GET /smuggled"),
	"GET /a HTTP/1.1\r\nHost: h\x00\r\n\r\n" + suite.Request("GET /smuggled"),
}

// FuzzSplit sends the same bytes at once and in pieces. Each byte of cuts is the length of a piece minus one; the last piece is
// the rest.
func FuzzSplit(f *testing.F) {
	for i, seed := range splitSeeds {
		f.Add([]byte(seed), []byte{byte(i), byte(7 * i), 0, 1, 2, 0})
		f.Add([]byte(seed), bytes.Repeat([]byte{byte(i % 5)}, 40))
	}
	s := startPieces(f, registerSplit)
	f.Fuzz(func(t *testing.T, stream, cuts []byte) {
		const most = 32 << 10 // one read of the server gets all
		if len(stream) > most || len(cuts) > 64 || len(stream) == 0 {
			return
		}
		// The received part of an ignored body, and whether its end is valid, depend on the timing.
		if bytes.Contains(stream, []byte("ignore")) {
			return
		}
		checkSplit(t, s, stream, cutUp(stream, cuts))
	})
}

func cutUp(stream, cuts []byte) (pieces [][]byte) {
	for _, cut := range cuts {
		n := int(cut) + 1
		if n >= len(stream) {
			break
		}
		pieces = append(pieces, stream[:n])
		stream = stream[n:]
	}
	return append(pieces, stream)
}

func checkSplit(t *testing.T, s *pieceServer, stream []byte, pieces [][]byte) {
	t.Helper()
	once := comparable(s.converse(t, [][]byte{stream}))
	if got := comparable(s.converse(t, pieces)); got != once {
		t.Errorf("sent %.2000q\nat once:  %.2000q\nin %.2000q:\n%.2000q", stream, once, pieces, got)
	}
	if strings.Contains(once, "smuggled") && !bytes.Contains(stream, []byte("smuggled")) {
		t.Errorf("the answer quotes bytes that were not sent")
	}
}

// TestSplitEverywhere cuts each stream in two at every offset.
func TestSplitEverywhere(t *testing.T) {
	s := startPieces(t, registerSplit)
	for _, seed := range splitSeeds {
		stream := []byte(seed)
		once := comparable(s.converse(t, [][]byte{stream}))
		if strings.Contains(once, "/smuggled") || strings.Contains(once, "/never") {
			t.Errorf("sent %q, answered with %q", stream, once)
		}
		for cut := 1; cut < len(stream); cut++ {
			if got := comparable(s.converse(t, [][]byte{stream[:cut], stream[cut:]})); got != once {
				t.Fatalf("sent %q\nat once:   %q\ncut at %d: %q", stream, once, cut, got)
			}
		}
	}
}

// TestSplitLargeBodies cuts bodies larger than smallBody, and larger than a read, at random offsets.
func TestSplitLargeBodies(t *testing.T) {
	s := startPieces(t, registerSplit)
	rng := rand.New(rand.NewPCG(4, 4))
	var chunks strings.Builder
	for size := range 400 {
		fmt.Fprintf(&chunks, "%x\r\n%s\r\n", size+1, strings.Repeat("c", size+1))
	}
	large := strings.Repeat("large ", 20_000)
	stream := []byte(suite.Request("POST /read/1", "", large) + suite.Request("GET /a") +
		suite.Request("POST /worker/2", "Transfer-Encoding: chunked", "", chunks.String()+"0\r\n\r\n") +
		suite.Request("POST /3", "Transfer-Encoding: chunked", "", chunks.String()+"0\r\nX: y\r\n\r\n") +
		suite.Request("POST /worker/4", "", large) + suite.Request("POST /5", "", large[:64<<10]) + suite.Request("POST /6", "", large[:64<<10+1]) + suite.Request("GET /b"))
	once := comparable(s.converse(t, [][]byte{stream}))
	if n := strings.Count(once, "HTTP/1.1 200 OK"); n != 8 {
		t.Fatalf("%d answers, want 8", n)
	}
	for range 30 {
		var pieces [][]byte
		for rest := stream; len(rest) > 0; {
			n := min(len(rest), 1+rng.IntN(1<<(1+rng.IntN(16))))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		if got := comparable(s.converse(t, pieces)); got != once {
			t.Fatalf("%d pieces: got %d bytes came back, %d when sent at once", len(pieces), len(got), len(once))
		}
	}
}
