//go:build linux

package suite

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/observe"
)

// compute uses the processor for a short time, too short for a takeover.
func compute(*dunlin.Request) dunlin.Response {
	for end := time.Now().Add(300 * time.Microsecond); time.Now().Before(end); {
	}
	return dunlin.Text("computed")
}

// TestQueueTime adds clients, whose connections are idle between requests, until requests of all kinds have been refused.
func TestQueueTime(t *testing.T) {
	logs := new(LogBuffer)
	config := dunlin.Config{Limits: dunlin.Limits{QueueTarget: 500 * time.Microsecond}, Problems: statusErrors, Logger: logs.Logger(slog.LevelWarn)}
	var observed atomic.Int64
	app, addr, _ := StartLoop(t, config, func(a *dunlin.App) {
		a.Install(dunlin.Hooks{Headers: stamp})
		a.Install(dunlin.Hooks{Observe: func(info *dunlin.AnswerInfo) {
			if info.Status() == 503 && info.Source() == observe.SourceOverload && info.Route() == "/compute" {
				observed.Add(1)
			}
		}})
		a.Get("/compute", compute)
		a.Post("/compute", compute)
		a.Get("/healthz", a.Readiness()).Critical()
	})
	requests := []string{
		"GET /compute HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST /compute HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody",
		"POST /compute HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
		"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
	}
	critical := len(requests) - 1
	var refused [3]atomic.Bool
	done := func() bool { return refused[0].Load() && refused[1].Load() && refused[2].Load() }
	limit := time.Now().Add(Patience)
	for !done() && time.Now().Before(limit) && !t.Failed() {
		burst(t, addr, 200*runtime.GOMAXPROCS(0), func(i int) string { return requests[i%len(requests)] }, func(i int, answer string) bool {
			kind := i % len(requests)
			switch {
			case strings.HasPrefix(answer, "HTTP/1.1 200"):
			case kind == critical:
				t.Errorf("a critical route answers\n%s", answer)
			case !strings.HasPrefix(answer, "HTTP/1.1 503"), !strings.Contains(answer, "Retry-After: 1"), !strings.Contains(answer, "X-Policy: overload 503 /compute"),
				!strings.Contains(answer, `"status":"overload"`), !strings.Contains(answer, "the server is overloaded: requests waited longer than 500µs"):
				t.Errorf("refused by\n%s", answer)
			default:
				refused[kind].Store(true)
			}
			return !done() && !t.Failed()
		})
	}
	if !done() {
		t.Fatalf("not refused in %v", Patience)
	}
	if n := app.Stats().Shed["queue-time"]; n == 0 || observed.Load() != int64(n) {
		t.Errorf("%d are counted, %d observed", n, observed.Load())
	}
	Soon(t, "it is logged", func() bool { return strings.Contains(logs.String(), "overloaded") })
}

// burst starts clients one after the other. Each of them repeats its request until took returns false or a second has passed.
func burst(t *testing.T, addr string, clients int, request func(i int) string, took func(i int, answer string) bool) {
	t.Helper()
	conns := make([]net.Conn, clients)
	for i := range conns {
		conns[i] = Dial(t, addr)
	}
	var all sync.WaitGroup
	var over atomic.Bool
	for i, conn := range conns {
		if i%(1+clients/300) == 0 {
			time.Sleep(500 * time.Microsecond) // the burst grows at any pace
		}
		all.Go(func() {
			defer conn.Close()
			br := bufio.NewReader(conn)
			for !over.Load() {
				if _, err := io.WriteString(conn, request(i)); err != nil {
					t.Error(err)
					return
				}
				answer, err := ReadAnswer(br, "GET")
				if err != nil {
					t.Error(err)
					return
				}
				if !took(i, answer) {
					over.Store(true)
				}
				time.Sleep(30 * time.Millisecond) // the connection is idle
			}
		})
	}
	end := time.AfterFunc(time.Second, func() { over.Store(true) })
	defer end.Stop()
	all.Wait()
}

func TestNoQueueTime(t *testing.T) {
	app, addr, _ := StartLoop(t, dunlin.Config{Limits: dunlin.Limits{QueueTarget: -1}}, func(a *dunlin.App) { a.Get("/compute", compute) })
	var readers []*bufio.Reader
	for range 20 {
		conn := Dial(t, addr)
		Send(t, conn, strings.Repeat("GET /compute HTTP/1.1\r\nHost: a\r\n\r\n", 10))
		readers = append(readers, bufio.NewReader(conn))
	}
	for _, br := range readers {
		for range 10 {
			Answered(t, br, 200, "computed")
		}
	}
	if n := app.Stats().Shed["queue-time"]; n != 0 {
		t.Errorf("%d refused", n)
	}
}
