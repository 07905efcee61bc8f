//go:build linux

package edge_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/cors"
	"github.com/gofiber/fiber/v3/middleware/helmet"
	"github.com/gofiber/fiber/v3/middleware/limiter"
	"github.com/gofiber/fiber/v3/middleware/requestid"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/bench/internal/proc"
	"github.com/dunlinhttp/dunlin/middleware"
)

const (
	serverVariable = "DUNLIN_EDGE_SERVER"
	origin         = "https://page.example"
	hello          = "Hello, World!"
)

// servers has the servers by name. A benchmark starts some of them, each in a process.
var servers = map[string]func(net.Listener) error{
	"dunlin":      func(ln net.Listener) error { return dunlinServer(ln, false) },
	"dunlin-five": func(ln net.Listener) error { return dunlinServer(ln, true) },
	"fiber":       func(ln net.Listener) error { return fiberServer(ln, false) },
	"fiber-five":  func(ln net.Listener) error { return fiberServer(ln, true) },

	// A second equal server shows the error of the measurement.
	"dunlin-again": func(ln net.Listener) error { return dunlinServer(ln, false) },
}

func TestMain(m *testing.M) {
	serve := servers[os.Getenv(serverVariable)]
	if serve == nil {
		os.Exit(m.Run())
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		fmt.Println(ln.Addr())
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin) // this process ends with its parent
			os.Exit(0)
		}()
		err = serve(ln)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func dunlinServer(ln net.Listener, five bool) error {
	config := dunlin.Config{Logger: slog.New(slog.DiscardHandler)}
	if five {
		config.Proxy.Trusted = []string{"127.0.0.0/8"}
	}
	app := dunlin.New(config)
	if five {
		app.Install(
			middleware.RequestID("X-Request-ID"),
			middleware.CORS(middleware.CORSConfig{Origins: []string{origin}, Credentials: true}),
			middleware.SecureHeaders(middleware.SecureHeadersConfig{}),
			middleware.RateLimit(middleware.RateLimitConfig{Limit: 1_000_000_000, Window: time.Hour}),
		)
	}
	app.Get("/", func(*dunlin.Request) dunlin.Response { return dunlin.Text(hello) })
	return app.Serve(ln)
}

func fiberServer(ln net.Listener, five bool) error {
	config := fiber.Config{}
	if five {
		config.TrustProxy, config.ProxyHeader = true, fiber.HeaderXForwardedFor
		config.TrustProxyConfig = fiber.TrustProxyConfig{Loopback: true}
	}
	app := fiber.New(config)
	if five {
		app.Use(
			requestid.New(),
			cors.New(cors.Config{AllowOrigins: []string{origin}, AllowCredentials: true}),
			helmet.New(),
			limiter.New(limiter.Config{Max: 1_000_000_000, Expiration: time.Hour}),
		)
	}
	app.Get("/", func(c fiber.Ctx) error { return c.SendString(hello) })
	return app.Listener(ln, fiber.ListenConfig{DisableStartupMessage: true})
}

// A server is a process that is measured.
type server struct {
	process *proc.Process
	addr    string
}

// start starts a server on its core, if the load has its own core.
func start(tb testing.TB, name string) *server {
	tb.Helper()
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	cores, _ := proc.Assign()
	out, in := io.Pipe()
	process, err := proc.Start(tb.Context(), proc.Command{Path: self, Cores: cores.Server, Out: in, Env: []string{serverVariable + "=" + name}})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(process.Stop)
	lines := bufio.NewReader(out)
	addr, err := lines.ReadString('\n')
	if err != nil {
		tb.Fatal(err)
	}
	go io.Copy(os.Stderr, lines)
	return &server{process, strings.TrimSpace(addr)}
}

// used returns the processor time of a process: the sum of its threads. A Go program ends no threads.
func (s *server) used(tb testing.TB) time.Duration {
	tb.Helper()
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", s.process.Pid))
	if err != nil {
		tb.Skip("the processor time of other processes cannot be read: ", err)
	}
	var sum time.Duration
	for _, thread := range threads {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/schedstat", s.process.Pid, thread.Name()))
		if err != nil {
			continue // the thread has ended
		}
		first, _, _ := strings.Cut(string(text), " ")
		n, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			tb.Fatal(err)
		}
		sum += time.Duration(n)
	}
	return sum
}

// With the middleware, both servers do everything that is measured.
func TestServersDoTheSame(t *testing.T) {
	for name := range servers {
		s := start(t, name)
		req, err := http.NewRequest("GET", "http://"+s.addr, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Origin", origin)
		req.Header.Set("X-Forwarded-For", "203.0.113.7")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(name, err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != 200 || string(body) != hello {
			t.Errorf("%s: got %d %q, %v", name, resp.StatusCode, body, err)
		}
		for _, field := range []string{"Access-Control-Allow-Origin", "X-Content-Type-Options", "X-Request-Id"} {
			if has := resp.Header.Get(field) != ""; has != strings.HasSuffix(name, "-five") {
				t.Errorf("%s: %s: got %q", name, field, resp.Header.Get(field))
			}
		}
		limited := resp.Header.Get("RateLimit") != "" || resp.Header.Get("X-Ratelimit-Limit") != ""
		if limited != strings.HasSuffix(name, "-five") {
			t.Errorf("%s: got %v", name, resp.Header)
		}
	}
}

func BenchmarkFive(b *testing.B) {
	const slice = 25 * time.Millisecond
	order := []string{"dunlin-five", "dunlin", "dunlin-again", "fiber", "fiber-five"}
	running, took := map[string]*server{}, map[string][]float64{}
	loads := map[string]*load{}
	for _, name := range order {
		running[name] = start(b, name)
	}
	defer onLoadCore(b)()
	for _, name := range order {
		loads[name] = connect(b, running[name].addr)
		loads[name].run(b, 20*slice) // warm up
	}
	for b.Loop() {
		order = append(order[1:], order[0]) // rotate
		for _, name := range order {
			before := running[name].used(b)
			n := loads[name].run(b, slice)
			took[name] = append(took[name], float64(running[name].used(b)-before)/float64(n))
		}
	}
	// Other processes on the machine change the cost of a request by more than the measured difference, but slowly. The result
	// is therefore the median of the differences within a round.
	adds := func(with, without string) float64 {
		var all []float64
		for i := range took[with] {
			all = append(all, took[with][i]-took[without][i])
		}
		return median(all)
	}
	for _, name := range order {
		b.ReportMetric(median(took[name]), name+"-cpu-ns/request")
	}
	five := adds("dunlin-five", "dunlin")
	b.ReportMetric(100*five/median(took["dunlin"]), "%of-plaintext")
	b.ReportMetric(100*adds("dunlin-again", "dunlin")/median(took["dunlin"]), "%error")
	b.ReportMetric(five/adds("fiber-five", "fiber"), "of-fiber's-five")
	b.ReportMetric(0, "ns/op")
}

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
