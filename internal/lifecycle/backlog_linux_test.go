package lifecycle_test

import (
	"bufio"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/suite"
)

// A gatedListener accepts connections only after the test has opened it.
type gatedListener struct {
	*net.TCPListener
	asked sync.Once
	ready chan struct{} // Accept has been called
	open  chan struct{}
}

func (l *gatedListener) Accept() (net.Conn, error) {
	l.asked.Do(func() { close(l.ready) })
	<-l.open
	return l.TCPListener.Accept()
}

func (l *gatedListener) SetDeadline(at time.Time) error {
	defer close(l.open)
	return l.TCPListener.SetDeadline(at)
}

// Clients see connections in the accept queue as established, and send requests.
func TestShutdownEmptiesTheBacklog(t *testing.T) {
	app, _ := suite.NewApp(dunlin.Config{Engine: dunlin.EngineStd})
	app.Get("/", suite.Text("served"))
	ln := &gatedListener{TCPListener: suite.Listen(t).(*net.TCPListener), ready: make(chan struct{}), open: make(chan struct{})}
	s := &served{app, t, ln.Addr().String(), make(chan error, 1)}
	go func() { s.done <- app.Serve(ln) }()
	<-ln.ready // a listener that is not yet served would be closed immediately
	var waiting []*bufio.Reader
	for range 5 {
		waiting = append(waiting, s.send("/"))
	}
	shutdown := s.shutdown(t.Context())
	for _, br := range waiting {
		s.last(br, "served")
	}
	s.wantEnd(shutdown)
	refused(t, s.addr)
}

// If all connections are in use, a shutdown does not wait for a free one.
func TestShutdownAtMaxConnections(t *testing.T) {
	entered := make(chan struct{})
	s := serve(t, dunlin.Config{Engine: dunlin.EngineStd, Limits: dunlin.Limits{MaxConnections: 1}}, func(app *dunlin.App) {
		app.Get("/", func(r *dunlin.Request) dunlin.Response {
			close(entered)
			<-r.Draining()
			return dunlin.Text("finished")
		})
	})
	running := s.send("/")
	suite.Await(t, "the action", entered)
	s.send("/")
	shutdown := s.shutdown(t.Context())
	s.last(running, "finished")
	s.wantEnd(shutdown)
}

// A response that began before the drain did not announce that it is the last, so the connection serves one more request.
func TestDrainAfterAnswerThatHasBegun(t *testing.T) {
	release := make(chan struct{})
	s := serve(t, dunlin.Config{Engine: dunlin.EngineLoop}, func(app *dunlin.App) {
		app.Get("/stream", func(*dunlin.Request) dunlin.Response {
			return dunlin.Stream("text/plain", func(w io.Writer) error {
				_, _ = io.WriteString(w, "begin, ")
				if err := dunlin.Flush(w); err != nil {
					return err
				}
				<-release
				_, err := io.WriteString(w, "end")
				return err
			})
		})
		app.Get("/next", suite.Text("next"))
	})
	conn := suite.Dial(t, s.addr)
	br := bufio.NewReader(conn)
	suite.Send(t, conn, suite.Request("GET /stream"))
	if _, err := br.Peek(1); err != nil {
		t.Fatal(err)
	}
	shutdown := s.shutdown(t.Context())
	<-s.Draining()
	suite.Send(t, conn, suite.Request("GET /next"))
	close(release)
	if got, err := suite.ReadAnswer(br, "GET"); err != nil {
		t.Errorf("the stream: got %q, %v", got, err)
	}
	s.last(br, "next")
	s.wantEnd(shutdown)
}
