package suite

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// An Adapter is a way to serve an app. The name of a test contains the name of its adapter; [Start] and [Dial] use it.
type Adapter struct {
	Name   string
	Engine dunlin.Engine
	Secure bool // over TLS
	H2     bool // HTTP/2; a gateway translates the HTTP/1.1 of the tests
	Memory bool // without a network, through a gateway
}

var (
	std         = Adapter{Name: "std", Engine: dunlin.EngineStd}
	loop        = Adapter{Name: "loop", Engine: dunlin.EngineLoop}
	loopOverTLS = Adapter{Name: "loop_by_TLS", Engine: dunlin.EngineLoop, Secure: true}
)

// Adapters is the list of all adapters.
var Adapters = []Adapter{
	std,
	loop,
	{Name: "std_by_TLS", Engine: dunlin.EngineStd, Secure: true},
	loopOverTLS,
	{Name: "std_by_h2", Engine: dunlin.EngineStd, Secure: true, H2: true},
	{Name: "loop_by_h2", Engine: dunlin.EngineLoop, Secure: true, H2: true},
	{Name: "std_by_h2c", Engine: dunlin.EngineStd, H2: true},
	{Name: "loop_by_h2c", Engine: dunlin.EngineLoop, H2: true},
	{Name: "memory", Engine: dunlin.EngineStd, Memory: true},
}

// adapterOf returns the adapter of a test. The zero value is TCP in clear text.
func adapterOf(t testing.TB) Adapter {
	for part := range strings.SplitSeq(t.Name(), "/") {
		for _, a := range Adapters {
			if part == a.Name {
				return a
			}
		}
	}
	return Adapter{}
}

// On runs f as a subtest on an adapter.
func (a Adapter) On(t *testing.T, f func(t *testing.T, engine dunlin.Engine)) {
	t.Helper()
	t.Run(a.Name, func(t *testing.T) {
		if a.Engine == dunlin.EngineLoop && runtime.GOOS != "linux" {
			t.Skip("the loop engine runs on Linux only")
		}
		f(t, a.Engine)
		if _, ok := started.LoadAndDelete(adapterTest(t)); !ok && behindGateway(a) && !t.Failed() && !t.Skipped() {
			t.Error("the test does not call Start, so it does not run on this adapter: add it to exceptions")
		}
	})
}

// started holds the names of subtests on adapters that have called Start.
var started sync.Map

// adapterTest returns the name of t up to the name of its adapter.
func adapterTest(t testing.TB) string {
	parts := strings.Split(t.Name(), "/")
	for i, part := range parts {
		if slices.ContainsFunc(Adapters, func(a Adapter) bool { return a.Name == part }) {
			return strings.Join(parts[:i+1], "/")
		}
	}
	return t.Name()
}

// Exchange is ExchangeOn with the server at addr, over TLS if the server uses it.
func Exchange(t *testing.T, addr string, closes bool, raws ...string) (answers []string) {
	t.Helper()
	return ExchangeOn(t, Dial(t, addr), closes, raws...)
}

// ExchangeOn sends raw requests over a connection, one after the other, and returns their answers. Then the server
// must close the connection or, if closes is false, answer another request. At the end the connection is closed.
func ExchangeOn(t *testing.T, conn net.Conn, closes bool, raws ...string) (answers []string) {
	t.Helper()
	defer conn.Close()
	patient := func() { // sets the deadline of the next answer
		if err := conn.SetDeadline(time.Now().Add(Patience)); err != nil {
			t.Fatal(err)
		}
	}
	br := bufio.NewReader(conn)
	for _, raw := range raws {
		patient()
		if _, err := io.WriteString(conn, raw); err != nil {
			t.Fatalf("send %.60q: %v", raw, err)
		}
		answer, err := ReadAnswer(br, MethodOf(raw))
		if err != nil {
			t.Fatalf("answer to %.60q: %v", raw, err)
		}
		answers = append(answers, answer)
	}
	patient()
	if closes {
		if b, err := br.ReadByte(); err == nil {
			t.Errorf("the server sent byte %q after the response and did not close the connection", b)
		}
		return answers
	}
	if _, err := io.WriteString(conn, "GET /probe HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
		t.Fatalf("send a request after the others: %v", err)
	}
	probe, err := ReadAnswer(br, http.MethodGet)
	if err != nil || !strings.HasSuffix(probe, "\n\nprobe") {
		t.Errorf("the following request was answered with %q, %v", probe, err)
	}
	return answers
}
