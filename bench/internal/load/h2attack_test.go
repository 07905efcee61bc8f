//go:build linux

package load

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// h2Server answers requests of HTTP/2 in clear text by f until the test ends.
func h2Server(t *testing.T, f http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewUnstartedServer(f)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func TestH2HoldOpensStreams(t *testing.T) {
	var begun atomic.Int32
	all, release := make(chan struct{}), make(chan struct{})
	addr := h2Server(t, func(http.ResponseWriter, *http.Request) {
		if begun.Add(1) == 20 {
			close(all)
		}
		<-release
	})
	held, err := H2Hold{Addr: addr, Path: "/", Connections: 4, Streams: 5}.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	<-all
	if n, err := held.Answered(); n != 0 || err != nil {
		t.Errorf("got %d ended streams (error %v), want 0", n, err)
	}
	close(release)
	for over := 0; over < 20; {
		n, err := held.Answered()
		if err != nil {
			t.Fatal(err)
		}
		over += n
	}
}

// Every attack consists of valid frames.
func TestH2Attacks(t *testing.T) {
	addr := h2Server(t, func(w http.ResponseWriter, r *http.Request) {})
	for _, kind := range H2AttackKinds {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		var got H2AttackResult
		var err error
		for got.Steps == 0 && err == nil && ctx.Err() == nil { // so short an attack may be over before it has begun
			got, err = H2Attack{Addr: addr, Kind: kind, Rate: 1000, Connections: 2, Duration: 100 * time.Millisecond}.Run(ctx)
		}
		cancel()
		if err != nil || got.Steps == 0 {
			t.Errorf("%s: got %+v, %v", kind, got, err)
		}
	}
	if _, err := (H2Attack{Addr: addr, Kind: "charm"}).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "charm") {
		t.Errorf("unknown kind: %v", err)
	}
}

func TestH2Answers(t *testing.T) {
	in := h2Frame(nil, h2Settings, 0, 0, "")
	in = h2Frame(in, h2Headers, h2EndHeaders, 1, "\x88")
	in = h2Frame(in, h2Data, h2EndStream, 1, "four")
	in = h2Frame(in, h2Reset, 0, 3, h2Number(8))
	if n := h2Answers(in); n != 2 {
		t.Errorf("got %d answers, want 2", n)
	}
	if n := h2Answers(in[:len(in)-2]); n != 2 {
		t.Errorf("truncated input: got %d answers, want 2", n)
	}
	if got := h2Literal(strings.Repeat("x", 127+300)); got[:3] != "\x7f\xac\x02" || len(got) != 3+127+300 {
		t.Errorf("a long literal begins with %x", got[:3])
	}
}
