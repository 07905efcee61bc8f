package h2_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// Repeated handovers to a new server under load lose no request. Connections end with GOAWAY in two steps, and the client
// repeats on the new server the requests that were too late for the old one.
func TestHandoverUnderLoad(t *testing.T) {
	t.Parallel()
	rounds := 20
	if testing.Short() {
		rounds = 3
	}
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			var current atomic.Pointer[server]
			begin := func() *server { return serve(t, v, dunlin.Config{}, newStage().register) }
			current.Store(begin())
			scheme := "http"
			if v.secure {
				scheme = "https"
			}
			var asked, answered atomic.Int64
			over := make(chan struct{})
			var clients sync.WaitGroup
			for range 3 {
				client := currentClient(t, &current)
				for i := range 6 {
					clients.Go(func() {
						for n := i; ; n++ {
							select {
							case <-over:
								return
							default:
							}
							asked.Add(1)
							if err := askOne(client, scheme, n); err != nil {
								t.Errorf("request %d: %v", asked.Load(), err)
								return
							}
							answered.Add(1)
						}
					})
				}
			}
			for range rounds {
				before := answered.Load()
				eventually(t, "requests are answered", func() bool { return answered.Load() >= before+100 || t.Failed() })
				old := current.Swap(begin())
				old.stop() // while requests are running
			}
			close(over)
			clients.Wait()
			if asked.Load() != answered.Load() {
				t.Errorf("got answers to %d of %d requests", answered.Load(), asked.Load())
			}
		})
	}
}

// currentClient returns a client whose new connections go to the current server.
func currentClient(t *testing.T, current *atomic.Pointer[server]) *http.Transport {
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, current.Load().addr)
	}
	client := &http.Transport{Protocols: new(http.Protocols), DisableCompression: true, DialContext: dial}
	if s := current.Load(); s.secure {
		client.Protocols.SetHTTP2(true)
		client.TLSClientConfig = &tls.Config{RootCAs: s.trusted}
	} else {
		client.Protocols.SetUnencryptedHTTP2(true)
	}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

// askOne sends one of several requests and checks its answer.
func askOne(client *http.Transport, scheme string, n int) error {
	method, path, want := "GET", "/hello", "hello"
	var body io.Reader
	switch n % 4 {
	case 1:
		path, want = fmt.Sprint("/size/", 1000*(n%100)), pattern(1000*(n%100))
	case 2:
		method, path, want = "POST", "/echo", pattern(700*(n%100))
		body = bytes.NewReader([]byte(want)) // which can be sent again
	case 3:
		path, want = fmt.Sprint("/stream/", 500*(n%100)), pattern(500*(n%100))
	}
	req, err := http.NewRequest(method, scheme+"://127.0.0.1/"+path[1:], body)
	if err != nil {
		return err
	}
	resp, err := client.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 || string(got) != want {
		return fmt.Errorf("%s %s: %d with %d bytes, want %d; %v", method, path, resp.StatusCode, len(got), len(want), err)
	}
	return nil
}
