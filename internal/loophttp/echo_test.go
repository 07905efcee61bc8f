//go:build linux

package loophttp_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/invariants"
	"github.com/dunlinhttp/dunlin/internal/suite"
)

// echoBody is the length of a body that is always gathered from pieces, because it does not fit into the first read with its
// head, and is echoed without copying.
const echoBody = 64 << 10

// longEcho is the length of a body that its action reads from the connection.
const longEcho = 1 << 20

func startEcho(t *testing.T) (addr string) {
	t.Helper()
	_, addr, _ = suite.StartLoop(t, dunlin.Config{}, func(app *dunlin.App) {
		app.Post("/", func(r *dunlin.Request) dunlin.Response {
			body, err := r.Bytes()
			if err != nil {
				return dunlin.Error(err)
			}
			return dunlin.Bytes("text/plain", body)
		})
	})
	return addr
}

// Echoed bodies stay unchanged while they wait for the client to read, although later requests are gathered into memory of the
// same kind.
func TestPendingEchoesStayUnchanged(t *testing.T) {
	for _, test := range []struct{ length, echoes int }{{echoBody, 40}, {longEcho, 10}} {
		t.Run(fmt.Sprint(test.length), func(t *testing.T) { echoesThatWait(t, test.length, test.echoes) })
	}
}

func echoesThatWait(t *testing.T, length, echoes int) {
	conn := suite.Dial(t, startEcho(t))
	body := func(i int) string { return strings.Repeat(fmt.Sprintf("%03d,", i), length/4) }
	sent := make(chan error, 1)
	go func() {
		for i := range echoes {
			whole := suite.Request("POST /", "", body(i))
			for _, piece := range []string{whole[:40_000], whole[40_000:]} {
				if _, err := io.WriteString(conn, piece); err != nil {
					sent <- err
					return
				}
			}
		}
		sent <- nil
	}()
	br := bufio.NewReader(conn)
	for i := range echoes {
		resp, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatalf("echo %d: %v", i, err)
		}
		got, err := io.ReadAll(resp.Body)
		if want := body(i); err != nil || string(got) != want {
			t.Fatalf("echo %d: got %d bytes that begin with %q (%v), want %d that begin with %q", i, len(got), got[:min(len(got), 8)], err, len(want), want[:8])
		}
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
}

// Gathering and echoing a body does not allocate memory of its size. Reading a long one allocates only the memory it is read
// into, which grows with the received bytes.
func TestEchoAllocations(t *testing.T) {
	if invariants.Enabled {
		t.Skip("the race detector allocates")
	}
	for _, test := range []struct{ length, echoes, most int }{{echoBody, 500, echoBody / 10}, {longEcho, 50, longEcho * 9 / 4}} {
		t.Run(fmt.Sprint(test.length), func(t *testing.T) {
			if each := echoAllocations(t, test.length, test.echoes); each > uint64(test.most) {
				t.Errorf("%d bytes allocated for each echo of %d", each, test.length)
			}
		})
	}
}

func echoAllocations(t *testing.T, length, echoes int) (each uint64) {
	conn := suite.Dial(t, startEcho(t))
	br := bufio.NewReader(conn)
	whole := []byte(suite.Request("POST /", "", strings.Repeat("x", length)))
	echo := func() {
		for _, piece := range [][]byte{whole[:40_000], whole[40_000:]} {
			if _, err := conn.Write(piece); err != nil {
				t.Fatal(err)
			}
		}
		for inHead := true; inHead; {
			line, err := br.ReadSlice('\n')
			if err != nil {
				t.Fatal(err)
			}
			inHead = len(line) > len("\r\n")
		}
		if _, err := br.Discard(length); err != nil {
			t.Fatal(err)
		}
	}
	echo() // warms up: one-time allocations
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range echoes {
		echo()
	}
	runtime.ReadMemStats(&after)
	return (after.TotalAlloc - before.TotalAlloc) / uint64(echoes)
}
