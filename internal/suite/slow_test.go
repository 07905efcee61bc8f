package suite

import (
	"bufio"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// A client that sends its body all the time, but too slowly, is told which limit it
// passed, whether the body is gathered for the action or read by it.
func TestMinBodyRate(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		var app *dunlin.App
		addr, _ := Start(t, dunlin.Config{Engine: engine, BodyTimeout: 30 * time.Millisecond, MinBodyRate: math.MaxInt32, MaxBody: 1 << 40}, func(a *dunlin.App) {
			app = a
			a.Post("/", func(r *dunlin.Request) dunlin.Response {
				if _, err := io.Copy(io.Discard, r.Body()); err != nil {
					return dunlin.Error(err)
				}
				return dunlin.Text("read")
			})
		})
		for i, c := range []struct {
			name, head, piece string
			most              int // pieces
		}{
			{"small", Request("POST /", "Content-Length: 60000"), "x", 59_999},
			{"large", Request("POST /", "Content-Length: 2000000000"), "xxxxxxxxxx", 1 << 30},
			{"chunks", Request("POST /", "Transfer-Encoding: chunked"), "14\r\n01234567890123456789\r\n", 1 << 30},
		} {
			t.Run(c.name, func(t *testing.T) {
				conn := Dial(t, addr)
				Send(t, conn, c.head)
				go func() { // until the server has had enough
					for range c.most {
						if _, err := io.WriteString(conn, c.piece); err != nil {
							return
						}
					}
				}()
				got, err := ReadAnswer(bufio.NewReader(conn), "POST")
				if err != nil || !strings.HasPrefix(got, "HTTP/1.1 408 ") {
					t.Fatalf("%q, %v; want a 408", got, err)
				}
				WantContains(t, "the answer", got, "the request body came at fewer than 2147483647 bytes a second over 30ms", "Connection: close\n")
				if n := app.Stats().Shed["slow-body"]; n != uint64(i+1) {
					t.Errorf("%d counted, want %d", n, i+1)
				}
			})
		}
	})
}

// The time in which the action does not read is not the client's.
func TestBodiesMayWaitForTheAction(t *testing.T) {
	const period = 20 * time.Millisecond
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine, BodyTimeout: period}, func(a *dunlin.App) {
			a.Post("/", func(r *dunlin.Request) dunlin.Response {
				body, some := r.Body(), make([]byte, 1000)
				for range 3 {
					if _, err := io.ReadFull(body, some); err != nil {
						return dunlin.Error(err)
					}
					<-time.After(3 * period) // it does something else
				}
				if _, err := io.Copy(io.Discard, body); err != nil {
					return dunlin.Error(err)
				}
				return dunlin.Text("read")
			})
		})
		conn := Dial(t, addr)
		Send(t, conn, Request("POST /", "", strings.Repeat("x", 300_000)))
		if got, err := ReadAnswer(bufio.NewReader(conn), "POST"); err != nil || got != Plain("read") {
			t.Errorf("%q, %v", got, err)
		}
	})
}
