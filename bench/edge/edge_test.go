package edge_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/cors"
	"github.com/gofiber/fiber/v3/middleware/helmet"
	"github.com/gofiber/fiber/v3/middleware/limiter"
	"github.com/gofiber/fiber/v3/middleware/requestid"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
)

const (
	serverVariable = "DUNLIN_EDGE_SERVER"
	origin         = "https://page.example"
	hello          = "Hello, World!"
)

// servers by name: a part of the processes that a benchmark starts.
var servers = map[string]func(net.Listener) error{
	"dunlin":      func(ln net.Listener) error { return dunlinServer(ln, false) },
	"dunlin-five": func(ln net.Listener) error { return dunlinServer(ln, true) },
	"fiber":       func(ln net.Listener) error { return fiberServer(ln, false) },
	"fiber-five":  func(ln net.Listener) error { return fiberServer(ln, true) },
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
			_, _ = io.Copy(io.Discard, os.Stdin) // the end of the parent is the end of this
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
		config.TrustedProxies = []string{"127.0.0.0/8"}
	}
	app := dunlin.New(config)
	if five {
		app.Use(
			middleware.RequestID("X-Request-ID"),
			middleware.CORS(middleware.CORSConfig{Origins: []string{origin}, Credentials: true}),
			middleware.SecureHeaders(middleware.SecurityConfig{}),
			middleware.RateLimit(middleware.Rate{Limit: 1_000_000_000, Window: time.Hour}),
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
	cmd  *exec.Cmd
	addr string
}

func start(tb testing.TB, name string) *server {
	tb.Helper()
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), serverVariable+"="+name)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		stdin.Close()
		_ = cmd.Wait() // it ends by itself
	})
	addr, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		tb.Fatal(err)
	}
	return &server{cmd, strings.TrimSpace(addr)}
}

// used returns the processor time of a process so far: that of its threads, of which a Go program ends none.
func (s *server) used(tb testing.TB) time.Duration {
	tb.Helper()
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", s.cmd.Process.Pid))
	if err != nil {
		tb.Skip("processor time of other processes is not to be had here: ", err)
	}
	var sum time.Duration
	for _, thread := range threads {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/schedstat", s.cmd.Process.Pid, thread.Name()))
		if err != nil {
			continue // it has ended
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

const request = "GET / HTTP/1.1\r\nHost: api.example\r\nOrigin: " + origin + "\r\nX-Forwarded-For: 203.0.113.7\r\n\r\n"

// ask sends n requests over some connections, one at a time each.
func (s *server) ask(tb testing.TB, n int) {
	tb.Helper()
	const conns = 16
	var wg sync.WaitGroup
	for range conns {
		wg.Go(func() {
			conn, err := net.Dial("tcp", s.addr)
			if err != nil {
				tb.Error(err)
				return
			}
			defer conn.Close()
			in := bufio.NewReader(conn)
			for range n / conns {
				if _, err := io.WriteString(conn, request); err != nil {
					tb.Error(err)
					return
				}
				if err := skipAnswer(in); err != nil {
					tb.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// skipAnswer reads an answer of 200 whose body is hello.
func skipAnswer(in *bufio.Reader) error {
	for first := true; ; first = false {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if first && !strings.HasPrefix(string(line), "HTTP/1.1 200") {
			return fmt.Errorf("the answer is %q", line)
		}
		if len(line) == 2 {
			_, err := in.Discard(len(hello))
			return err
		}
	}
}

// Both do what is measured.
func TestFive(t *testing.T) {
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
			t.Errorf("%s: %d %q, %v", name, resp.StatusCode, body, err)
		}
		for _, field := range []string{"Access-Control-Allow-Origin", "X-Content-Type-Options", "X-Request-Id"} {
			if has := resp.Header.Get(field) != ""; has != strings.HasSuffix(name, "-five") {
				t.Errorf("%s: %s: %q", name, field, resp.Header.Get(field))
			}
		}
		limited := resp.Header.Get("RateLimit") != "" || resp.Header.Get("X-Ratelimit-Limit") != ""
		if limited != strings.HasSuffix(name, "-five") {
			t.Errorf("%s: %v", name, resp.Header)
		}
	}
}

func BenchmarkFive(b *testing.B) {
	const each = 16_000
	order := []string{"dunlin", "dunlin-five", "fiber", "fiber-five"}
	running, took := map[string]*server{}, map[string][]float64{}
	for _, name := range order {
		running[name] = start(b, name)
		running[name].ask(b, each) // what is done once is done
	}
	for b.Loop() {
		for _, name := range order {
			s := running[name]
			before := s.used(b)
			s.ask(b, each)
			took[name] = append(took[name], float64(s.used(b)-before)/each)
		}
	}
	median := map[string]float64{}
	for name, all := range took {
		slices.Sort(all)
		median[name] = all[len(all)/2]
		b.ReportMetric(median[name], name+"-cpu-ns/request")
	}
	adds := median["dunlin-five"] - median["dunlin"]
	b.ReportMetric(100*adds/median["dunlin"], "%of-plaintext")
	b.ReportMetric(adds/(median["fiber-five"]-median["fiber"]), "of-fiber's-five")
	b.ReportMetric(0, "ns/op")
}
