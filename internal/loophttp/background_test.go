//go:build linux

package loophttp_test

import (
	"bufio"
	"io"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/suite"
)

// Streams that wait before they send make their driver lose the loop, until their route is learned. After that each starts on a
// goroutine of its own.
func TestWaitingStreamsAreLearned(t *testing.T) {
	const open = 64
	entered, release := make(chan struct{}), make(chan struct{})
	app, addr, _ := suite.StartLoop(t, dunlin.Config{}, func(app *dunlin.App) {
		app.Get("/wait", func(*dunlin.Request) dunlin.Response {
			return dunlin.Stream("text/plain", func(w io.Writer) error {
				entered <- struct{}{}
				<-release
				_, err := io.WriteString(w, "done")
				return err
			})
		})
	})
	var conns []io.ReadWriter
	for range open {
		conn := suite.Dial(t, addr)
		suite.Send(t, conn, suite.Request("GET /wait"))
		suite.Await(t, "the stream", entered)
		conns = append(conns, conn)
	}
	if n := app.Stats().Actions.Takeovers; n > open/2 {
		t.Errorf("%d streams took their loop from its driver %d times", open, n)
	}
	close(release)
	for _, conn := range conns {
		if got, err := suite.ReadAnswer(bufio.NewReader(conn), "GET"); err != nil || !strings.HasSuffix(got, "done") {
			t.Fatalf("got %q, %v", got, err)
		}
	}
}
