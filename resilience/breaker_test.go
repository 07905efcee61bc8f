package resilience_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunlinhttp/dunlin/resilience"
)

// A roundTrip is a fake service that answers by path.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// service answers /report with 503, /reset with a broken connection and /gone with a failed dial. /hang blocks until the
// request's context ends. Other paths get 200.
func service(req *http.Request) (*http.Response, error) {
	status := http.StatusOK
	switch req.URL.Path {
	case "/report":
		status = http.StatusServiceUnavailable
	case "/hang":
		<-req.Context().Done()
		return nil, req.Context().Err()
	case "/reset":
		return nil, &net.OpError{Op: "read", Err: errors.New("connection reset")}
	case "/gone":
		return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader("")), Request: req}, nil
}

// call sends a request for path and returns the error.
func call(t *testing.T, transport http.RoundTripper, path string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", "http://upstream"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := transport.RoundTrip(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	return err
}

// The failures of one client do not open the breaker for other clients, whether its requests get 503, time out or are reset.
func TestBreakerIgnoresSingleClient(t *testing.T) {
	for _, path := range []string{"/report", "/hang", "/reset"} {
		synctest.Test(t, func(t *testing.T) {
			b := resilience.NewBreaker(resilience.BreakerConfig{})
			transport := b.Transport(roundTrip(service))
			for range 19 { // a service with few calls
				_ = call(t, transport, path)
			}
			if err := call(t, transport, "/fine"); err != nil {
				t.Errorf("%s, other client, few calls: %v", path, err)
			}
			<-time.After(10 * time.Second)
			for range 100 { // a service with many calls
				_ = call(t, transport, path)
				for range 2 {
					if err := call(t, transport, "/fine"); err != nil {
						t.Fatalf("%s, other client, many calls: %v", path, err)
					}
				}
			}
		})
	}
}

func TestBreakerOpensByShare(t *testing.T) {
	for _, path := range []string{"/report", "/hang", "/reset"} {
		synctest.Test(t, func(t *testing.T) {
			b := resilience.NewBreaker(resilience.BreakerConfig{OpenFor: time.Second})
			transport := b.Transport(roundTrip(service))
			half := func() {
				for range 10 {
					_, _ = call(t, transport, "/fine"), call(t, transport, path)
				}
			}
			if half(); !b.Open() {
				t.Fatalf("half of 20 calls to %s failed: got a closed breaker", path)
			}
			if err := call(t, transport, "/fine"); !errors.Is(err, resilience.ErrOpen) {
				t.Errorf("%s: call with an open breaker: %v", path, err)
			}
			<-time.After(time.Second)
			if _ = call(t, transport, path); !b.Open() {
				t.Errorf("%s: a failed trial closed the breaker", path)
			}
			// A failed trial of one client does not extend the wait of other clients.
			if err := call(t, transport, "/fine"); err != nil || b.Open() {
				t.Errorf("%s: successful trial: got %v, open %v", path, err, b.Open())
			}
			if _ = call(t, transport, path); b.Open() {
				t.Errorf("%s: earlier failures count after the breaker has closed", path)
			}
		})
	}
}

// Failures spread over time do not add up to a failure share.
func TestBreakerWindowExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := resilience.NewBreaker(resilience.BreakerConfig{})
		transport := b.Transport(roundTrip(service))
		for range 100 {
			_ = call(t, transport, "/report")
			<-time.After(600 * time.Millisecond) // 17 calls in ten seconds
		}
		if b.Open() {
			t.Error("the breaker opened after fewer than 20 calls in ten seconds")
		}
	})
}

func TestBreakerWithoutConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := resilience.NewBreaker(resilience.BreakerConfig{})
		transport := b.Transport(roundTrip(service))
		for range 4 {
			_ = call(t, transport, "/gone")
		}
		_ = call(t, transport, "/report") // this call connects
		for range 4 {
			_ = call(t, transport, "/gone")
		}
		if b.Open() {
			t.Error("the breaker opened before five consecutive failures")
		}
		if _ = call(t, transport, "/gone"); !b.Open() {
			t.Error("the breaker is closed after five consecutive failures to connect")
		}
	})
}

func TestBreakerIgnoresCustom503(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := resilience.NewBreaker(resilience.BreakerConfig{IsFailure: func(resp *http.Response) bool { return resp.StatusCode == http.StatusBadGateway }})
		transport := b.Transport(roundTrip(service))
		for range 100 {
			_ = call(t, transport, "/report")
		}
		if b.Open() {
			t.Error("a 503 of the application opened the breaker")
		}
	})
}

// The breaker recognizes a connection failure of a real transport.
func TestBreakerOnTheNetwork(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close() // frees the port: connections are refused
	b := resilience.NewBreaker(resilience.BreakerConfig{Failures: 2, OpenFor: time.Hour})
	client := &http.Client{Transport: b.Transport(&http.Transport{})}
	for range 2 {
		if resp, err := client.Post("http://"+l.Addr().String(), "text/plain", strings.NewReader("x")); err == nil {
			_ = resp.Body.Close()
			t.Fatal(resp.Status)
		}
	}
	if _, err := client.Post("http://"+l.Addr().String(), "text/plain", strings.NewReader("x")); !errors.Is(err, resilience.ErrOpen) {
		t.Errorf("third call: %v", err)
	}
}
