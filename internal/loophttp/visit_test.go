//go:build linux

package loophttp_test

import (
	"bufio"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/suite"
)

// A connection with many pipelined requests, whose actions take a while without blocking, gives other connections of its loop
// their turn.
func TestPipelinedRequestsDoNotDelayOthers(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // one loop for all
	for {                                           // until the loop has served all requests itself; on a busy machine it may lose some
		ahead, requests, same := askedBesidePipelined(t)
		if same && ahead == requests {
			t.Errorf("all of %d requests in a row were served before one that came meanwhile", requests)
		}
		if same {
			return
		}
	}
}

// askedBesidePipelined returns the number of requests of a pipelining connection that were served before the request of
// another connection, which arrived during the second of them. same is false if the first connection lost the loop, so that
// the other did not have to wait.
func askedBesidePipelined(t *testing.T) (ahead, requests int32, same bool) {
	requests = 100
	var asked, before atomic.Int32
	var other net.Conn
	app, addr, _ := suite.StartLoop(t, dunlin.Config{}, func(app *dunlin.App) {
		app.Get("/busy", func(*dunlin.Request) dunlin.Response {
			if asked.Add(1) == 2 { // during the visit
				if _, err := other.Write([]byte(suite.Request("GET /other"))); err != nil {
					t.Error(err)
				}
			}
			for end := time.Now().Add(100 * time.Microsecond); time.Now().Before(end); {
			}
			return dunlin.Text("busy")
		})
		app.Get("/other", func(*dunlin.Request) dunlin.Response {
			before.Store(asked.Load())
			return dunlin.Text("other")
		})
	})
	other = suite.Dial(t, addr)
	answers := bufio.NewReader(other)
	suite.Send(t, other, suite.Request("GET /other"))
	suite.Answered(t, answers, 200, "other")
	one := suite.Dial(t, addr)
	suite.Send(t, one, strings.Repeat(suite.Request("GET /busy"), int(requests)))
	suite.Answered(t, answers, 200, "other")
	br := bufio.NewReader(one)
	for range requests {
		suite.Answered(t, br, 200, "busy")
	}
	return before.Load(), requests, app.Stats().Actions.Takeovers == 0
}
