//go:build linux

package loophttp_test

import (
	"bufio"
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/invariants"
	"github.com/dunlinhttp/dunlin/internal/suite"
)

// A view of the body that is kept after the answer reads as 0xCC in builds with the race detector, wherever the body was: in
// the read buffer, gathered from pieces, or read by the action.
func TestLoopBorrowedBytesArePoisoned(t *testing.T) {
	if !invariants.Enabled {
		t.Skip("only builds with the race detector pay for it")
	}
	var view []byte // set by one driver after another
	s := startPieces(t, func(app *dunlin.App) {
		app.Post("/", func(r *dunlin.Request) dunlin.Response {
			body, err := r.Bytes()
			if err != nil {
				return dunlin.Error(err)
			}
			view = body
			return dunlin.Text(fmt.Sprint(len(body)))
		})
		app.Get("/look", func(*dunlin.Request) dunlin.Response { return dunlin.Text(string(view)) })
	})
	// The padding makes the next request in the same buffer end before the body.
	pad := "X-Pad: " + strings.Repeat("p", 200)
	large := strings.Repeat("l", 100<<10)
	for _, c := range []struct {
		name   string
		pieces []string
		length int
	}{
		{"with the head", []string{suite.Request("POST /", pad, "", "small body")}, 10},
		{"in two pieces", []string{suite.Request("POST /", pad, "Content-Length: 10") + "small", " body"}, 10},
		{"in a chunk", []string{suite.Request("POST /", pad, "Transfer-Encoding: chunked", "", "a\r\nsmall body\r\n0\r\n\r\n")}, 10},
		{"in chunks", []string{suite.Request("POST /", pad, "Transfer-Encoding: chunked"), "5\r\nsmall\r\n", "5\r\n body\r\n0\r\n\r\n"}, 10},
		{"read by the action", []string{suite.Request("POST /", pad, "", large)}, len(large)},
		{"chunks read by the action", []string{suite.Request("POST /", pad, "Transfer-Encoding: chunked"), "19000\r\n", large, "\r\n0\r\n\r\n"}, len(large)},
	} {
		t.Run(c.name, func(t *testing.T) {
			ask := func(want string, pieces ...string) {
				t.Helper()
				var all [][]byte
				for _, p := range pieces {
					all = append(all, []byte(p))
				}
				suite.Answered(t, bufio.NewReader(bytes.NewReader(s.converse(t, all))), 200, want)
			}
			ask(fmt.Sprint(c.length), c.pieces...)
			// On another connection: two requests that one read returns end together.
			ask(strings.Repeat("\xcc", c.length), suite.Request("GET /look"))
		})
	}
}
