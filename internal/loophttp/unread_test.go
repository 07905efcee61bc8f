//go:build linux

package loophttp_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/suite"
)

// Large answers that no client reads fill the memory, at any limit. Small requests, of the same route and of others, are answered
// meanwhile, and the ceiling holds.
func TestSmallAnswersBesideUnreadOnes(t *testing.T) {
	for _, limit := range []dunlin.ByteSize{24 << 20, 64 << 20, 256 << 20} {
		t.Run(fmt.Sprint(limit>>20, " MiB"), func(t *testing.T) {
			const clients = 64
			app, addr, _ := suite.StartLoop(t, dunlin.Config{Limits: dunlin.Limits{Memory: limit, QueueTarget: -1}}, func(app *dunlin.App) {
				app.Get("/answer/{n:int}", func(r *dunlin.Request) dunlin.Response {
					n, err := strconv.Atoi(r.Param("n"))
					if err != nil {
						return dunlin.Error(err)
					}
					return dunlin.Bytes("", make([]byte, n))
				})
				app.Get("/quick", suite.Text("quick"))
			})
			budget := app.Stats().Memory.Budget
			const unsent = 2 << 20 // what the socket buffers hold
			large := suite.Request(fmt.Sprint("GET /answer/", max(1<<20, 2*budget/clients)+unsent))
			unread := func() {
				t.Helper()
				conn := suite.Dial(t, addr)
				if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
					t.Fatal(err)
				}
				suite.Send(t, conn, large)
			}
			small := func() {
				t.Helper()
				for path, n := range map[string]int{"/answer/20000": 20000, "/quick": 5} {
					resp, err := http.ReadResponse(bufio.NewReader(suite.AskConn(t, addr, suite.Request("GET "+path))), nil)
					if err != nil {
						t.Fatal(err)
					}
					if body := suite.Body(t, resp); resp.StatusCode != 200 || len(body) != n {
						t.Errorf("%s: %d with %d bytes: got %.100q", path, resp.StatusCode, len(body), body)
					}
				}
			}
			small()
			for range clients {
				unread()
				small()
			}
			suite.Soon(t, "some are cut off", func() bool { return app.Stats().Shed["largest-holder"] > 0 })
			for range clients { // at once
				unread()
			}
			for range 10 {
				small()
			}
			if m := app.Stats().Memory; m.Held > m.Budget+m.Budget/8+m.Ending {
				t.Errorf("%d bytes are held of %d, %d of them ending", m.Held, m.Budget, m.Ending)
			}
		})
	}
}

// Clients that read large answers at a moderate rate are all served, though the memory has room for a quarter of the answers at a
// time: the others wait before their answers are made.
func TestLargeAnswersWaitForThoseThatAreRead(t *testing.T) {
	const clients, size, piece = 60, 1 << 20, 16 << 10
	app, addr, _ := suite.StartLoop(t, dunlin.Config{Limits: dunlin.Limits{Memory: 64 << 20, QueueTarget: -1}}, func(app *dunlin.App) {
		app.Get("/", func(*dunlin.Request) dunlin.Response { return dunlin.Bytes("", make([]byte, size)) })
	})
	var all sync.WaitGroup
	for range clients {
		conn := suite.Dial(t, addr)
		if err := conn.(*net.TCPConn).SetReadBuffer(64 << 10); err != nil {
			t.Fatal(err)
		}
		suite.Send(t, conn, suite.Request("GET /"))
		all.Go(func() {
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Error(err)
				return
			}
			pace := time.NewTicker(time.Second / (size / piece)) // 1 MiB/s
			defer pace.Stop()
			n := int64(0)
			for err == nil {
				<-pace.C
				var got int64
				got, err = io.CopyN(io.Discard, resp.Body, piece)
				n += got
			}
			if resp.StatusCode != 200 || n != size {
				t.Errorf("%d with %d bytes: %v", resp.StatusCode, n, err)
			}
		})
	}
	all.Wait()
	if shed := app.Stats().Shed["largest-holder"]; shed > 0 {
		t.Errorf("%d were evicted", shed)
	}
}
