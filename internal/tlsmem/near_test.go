package tlsmem

import (
	"bytes"
	"crypto/tls"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/tlsmem/tlstest"
)

// What the suites seal by lies in two places for each direction, beside the tls.Conn.
func TestWhatIsNear(t *testing.T) {
	onVersions(t, func(t *testing.T, version uint16) {
		l, _ := newLink(t, version, dialGo)
		seen := map[uintptr]bool{}
		for i, at := range l.server.near.at {
			if at == 0 || seen[at] || l.server.near.lines[i] == 0 {
				t.Errorf("place %d: %#x, %d lines", i, at, l.server.near.lines[i])
			}
			seen[at] = true
		}
		if n := testing.AllocsPerRun(5, l.server.Prefetch); n > 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

// Keys that have changed lie elsewhere: that costs time, and nothing else.
func TestPrefetchingKeysThatHaveChanged(t *testing.T) {
	l, client := newLink(t, tls.VersionTLS13, dialRaw)
	raw := client.(*tlstest.Raw)
	for range 20 {
		if err := raw.Send(raw.KeyUpdate(true), raw.Record(tlstest.Application, bytes.Repeat([]byte("x"), 100), 0)); err != nil {
			t.Fatal(err)
		}
		l.server.Prefetch()
		l.server.LendInPlace(l.sent(2))
		if got, err := l.read(); !NeedsMore(err) || len(got) != 100 {
			t.Fatalf("got %q, %v", got, err)
		}
		l.server.Out = nil
	}
	if fresh := Server(tlstest.Server(), nil); fresh.near != (near{}) {
		t.Error("it is known before the handshake")
	} else {
		fresh.Prefetch()
	}
}
