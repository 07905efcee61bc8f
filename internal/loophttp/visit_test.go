//go:build linux

package loophttp_test

import (
	"bufio"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/suite"
)

// A connection that sends many requests at once, whose actions take a while without blocking, gives others of its loop their
// turn meanwhile.
func TestPipelinedRequestsLeaveOthersTheirTurn(t *testing.T) {
	const requests = 400
	var (
		asked  atomic.Int32
		others []net.Conn
		ahead  = make(chan int32, 64) // requests of the one that were served when each of the others was
	)
	_, addr, _ := suite.StartLoop(t, dunlin.Config{}, func(app *dunlin.App) {
		app.Get("/busy", func(*dunlin.Request) dunlin.Response {
			if asked.Add(1) == 2 {
				for _, c := range others { // they ask in the middle of the visit
					if _, err := c.Write([]byte(suite.Request("GET /other"))); err != nil {
						t.Error(err)
					}
				}
			}
			for end := time.Now().Add(100 * time.Microsecond); time.Now().Before(end); {
			}
			return dunlin.Text("busy")
		})
		app.Get("/other", func(*dunlin.Request) dunlin.Response {
			ahead <- asked.Load()
			return dunlin.Text("other")
		})
	})
	for range 16 { // some of them on the same loop
		c := suite.Dial(t, addr)
		suite.Send(t, c, suite.Request("GET /other"))
		suite.Answered(t, bufio.NewReader(c), 200, "other")
		<-ahead
		others = append(others, c)
	}
	one := suite.Dial(t, addr)
	suite.Send(t, one, strings.Repeat(suite.Request("GET /busy"), requests))
	for range others {
		if n := <-ahead; n > requests/2 {
			t.Errorf("%d of %d requests in a row were served first", n, requests)
		}
	}
	br := bufio.NewReader(one)
	for range requests {
		suite.Answered(t, br, 200, "busy")
	}
}
