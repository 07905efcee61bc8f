package suite

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// A client that sends its body steadily but too slowly gets a response that names the limit, whether the body is buffered for
// the action or read by it.
func TestMinBodyRate(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		for _, c := range []struct {
			name, head, piece string
			most              int // number of pieces
		}{
			{"small", Request("POST /", "Content-Length: 60000"), "x", 59_999},
			{"large", Request("POST /", "Content-Length: 2000000000"), "xxxxxxxxxx", 1 << 30},
			{"chunks", Request("POST /", "Transfer-Encoding: chunked"), "14\r\n01234567890123456789\r\n", 1 << 30},
		} {
			t.Run(c.name, func(t *testing.T) {
				Unhurried(t, 30*time.Millisecond, func(period time.Duration) error { // a piece is sent within it
					return tooSlow(t, dunlin.Config{Engine: engine, Timeouts: dunlin.Timeouts{Body: period}}, c.head, c.piece, c.most)
				})
			})
		}
	})
}

// tooSlow sends a body in pieces until the server cuts the client off.
func tooSlow(t *testing.T, config dunlin.Config, head, piece string, limit int) error {
	config.Limits.MinBodyRate, config.Limits.MaxBody = math.MaxInt32, 1<<40
	var app *dunlin.App
	addr, _ := Start(t, config, func(a *dunlin.App) {
		app = a
		a.Post("/", func(r *dunlin.Request) dunlin.Response {
			if _, err := io.Copy(io.Discard, r.Body()); err != nil {
				return dunlin.Error(err)
			}
			return dunlin.Text("read")
		})
	})
	conn := Dial(t, addr)
	Send(t, conn, head)
	go func() { // until the server cuts it off
		for range limit {
			if _, err := io.WriteString(conn, piece); err != nil {
				return
			}
		}
	}()
	got, err := ReadAnswer(bufio.NewReader(conn), "POST")
	if err != nil || !strings.HasPrefix(got, "HTTP/1.1 408 ") {
		return fmt.Errorf("%q, %v; want a 408", got, err)
	}
	if strings.Contains(got, "no bytes of the request body arrived") {
		return Late(got)
	}
	for _, part := range []string{fmt.Sprint("the request body arrived at fewer than 2147483647 bytes a second over ", config.Timeouts.Body), "Connection: close\n"} {
		if !strings.Contains(got, part) {
			return fmt.Errorf("%q lacks %q", got, part)
		}
	}
	if n := app.Stats().Shed["slow-body"]; n != 1 {
		return fmt.Errorf("%d counted, want 1", n)
	}
	return nil
}

// The time in which the action does not read does not count for the rate.
func TestMinBodyRateExcludesWaitingForAction(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		Unhurried(t, 20*time.Millisecond, func(period time.Duration) error {
			addr, _ := Start(t, dunlin.Config{Engine: engine, Timeouts: dunlin.Timeouts{Body: period}}, func(a *dunlin.App) {
				a.Post("/", func(r *dunlin.Request) dunlin.Response {
					body, some := r.Body(), make([]byte, 1000)
					for range 3 {
						if _, err := io.ReadFull(body, some); err != nil {
							return dunlin.Error(err)
						}
						<-time.After(3 * period) // the action does other work
					}
					if _, err := io.Copy(io.Discard, body); err != nil {
						return dunlin.Error(err)
					}
					return dunlin.Text("read")
				})
			})
			conn := Dial(t, addr)
			go func() { _, _ = io.WriteString(conn, Request("POST /", "", strings.Repeat("x", 300_000))) }() // errors show in the response
			got, err := ReadAnswer(bufio.NewReader(conn), "POST")
			if strings.HasPrefix(got, "HTTP/1.1 408 ") {
				return Late(got)
			}
			if err != nil || got != Plain("read") {
				return fmt.Errorf("%q, %v", got, err)
			}
			return nil
		})
	})
}
