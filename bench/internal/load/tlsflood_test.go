package load

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// tlsServer serves HTTPS until the test ends.
func tlsServer(t *testing.T) string {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "https://")
}

func TestTLSReturningResumes(t *testing.T) {
	client := TLSReturning{Addr: tlsServer(t), Path: "/", Patience: 20 * time.Second, Duration: 50 * time.Millisecond}
	if err := client.Open(); err != nil {
		t.Fatal(err)
	}
	got, err := client.Run(t.Context())
	if err != nil || got.Count == 0 || got.Whole != 0 || got.Failed != 0 || got.P50 <= 0 || got.P99 < got.P50 {
		t.Errorf("got %+v, %v; want resumed sessions", got, err)
	}
}

func TestTLSFloodIsAnswered(t *testing.T) {
	addr := tlsServer(t)
	for limit := time.Now().Add(20 * time.Second); ; { // a busy machine may answer none in such a short time
		got, err := TLSFlood{Addr: addr, Rate: 1000, Duration: 100 * time.Millisecond}.Run(t.Context())
		if err != nil || got.Answered > got.Asked {
			t.Fatalf("got %+v, %v", got, err)
		}
		if got.Answered > 0 {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("got %+v: the server answered no ClientHello", got)
		}
	}
}
