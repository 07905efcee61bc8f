package stdhttp

import (
	"bufio"
	"net"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"
)

// A connection on which nothing was asked has more time for its first request than one that is kept alive.
func TestShutdownAwaitsFirstRequests(t *testing.T) {
	for _, c := range []struct {
		name     string
		kept     bool
		after    time.Duration
		answered bool
	}{
		{"a new one", false, firstRequest - time.Millisecond, true},
		{"a new one, too late", false, firstRequest + time.Millisecond, false},
		{"one that is kept", true, lastRequests - time.Millisecond, true},
		{"one that is kept, too late", true, lastRequests + time.Millisecond, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := NewService(patient).NewServer(nil)
				srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { noteAsked(r) })
				from := &takenListener{conns: make(chan net.Conn), closed: make(chan struct{})}
				go func() { _ = srv.Server.Serve(from) }()
				client, served := net.Pipe()
				defer client.Close()
				from.pass(&timedConn{Conn: served, server: patient})
				ask := func() error {
					if err := (&http.Request{Host: "x", URL: &url.URL{Path: "/"}}).Write(client); err != nil {
						return err
					}
					_, err := http.ReadResponse(bufio.NewReader(client), nil)
					return err
				}
				if c.kept {
					if err := ask(); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
				_ = from.Close()
				ended := make(chan error)
				go func() { ended <- srv.Shutdown(t.Context()) }()
				<-time.After(c.after)
				if err := ask(); (err == nil) != c.answered {
					t.Errorf("answered with %v", err)
				}
				_ = client.Close()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
