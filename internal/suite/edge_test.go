package suite

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/ext"
	"github.com/dunlinhttp/dunlin/middleware"
)

const edgePage = "https://a.example"

// edgeOf returns the features of the edge, made anew: RateLimit counts for itself.
func edgeOf(limit int) []dunlin.Feature {
	return []dunlin.Feature{
		middleware.RequestID("X-Request-ID"),
		middleware.CORS(middleware.CORSConfig{Origins: []string{edgePage, "https://b.example"}, Credentials: true}),
		middleware.SecureHeaders(middleware.SecureHeadersConfig{HSTS: time.Hour}),
		middleware.RateLimit(middleware.RateLimitConfig{Limit: limit, Window: 8760 * time.Hour}), // nothing expires during the test
	}
}

// apart returns features with another one in between.
func apart(all []dunlin.Feature) (spaced []dunlin.Feature) {
	for _, f := range all {
		spaced = append(spaced, f, dunlin.Hooks{Wrap: func(next dunlin.Action) dunlin.Action {
			return func(r *dunlin.Request) dunlin.Response { return next(r) }
		}})
	}
	return spaced
}

// oddLines returns field lines that the edge reads: repeated, in any case, empty, malformed, and in any order.
func oddLines(random *rand.Rand) (lines []string) {
	one := func(of ...string) string { return of[random.IntN(len(of))] }
	list := func(elements ...string) (all string) {
		n := random.IntN(5)
		if random.IntN(20) == 0 {
			n = 100
		}
		for range n {
			all += one(elements...) + one(",", ", ", " ,\t", ",,")
		}
		return all + one(elements...)
	}
	addresses := func() string {
		return list("203.0.113.7", "203.0.113.7", "203.0.113.8", "10.1.2.3", "127.0.0.1", "192.0.2.7", "unknown", "", "2001:db8::1", "[2001:db8::1]:80", "2a00::1", "2a00::2",
			"2a00:0:0:1::1", "::ffff:203.0.113.7", "203.0.113.7:80", "10.1.2.3:80", "010.1.1.1", "256.1.1.1", "1.2.3", "0.0.0.0", "_hidden", "fe80::1%eth0")
	}
	values := map[string]func() string{
		"X-Request-ID": func() string {
			return one("", "abc", "a b", "a\tb", "\x80", "0b7f7fa2-8a3c-4a2e-9f36-4e1b1c0a7f55", strings.Repeat("x", 128), strings.Repeat("x", 129), "a,b", "203.0.113.7")
		},
		"Origin": func() string {
			return one("", edgePage, edgePage, "https://b.example", "https://B.example", "null", "https://c.example", edgePage+", "+edgePage)
		},
		"X-Forwarded-For": addresses,
		"X-Real-IP":       addresses,
		"Forwarded": func() string {
			return list("for=203.0.113.7", "for=203.0.113.8;proto=https", `for="[2001:db8::1]:80"`, "for=10.1.2.3", "for=unknown", `for="_x"`, "for=127.0.0.1;proto=http", "proto=https", "for", "")
		},
		"X-Forwarded-Proto":             func() string { return one("https", "http", "", "https, http") },
		"Access-Control-Request-Method": func() string { return one("PUT", "") },
	}
	for name, value := range values {
		for range []int{0, 1, 1, 1, 1, 2, 3}[random.IntN(7)] {
			lines = append(lines, one(name, strings.ToLower(name), strings.ToUpper(name))+":"+one("", " ", "\t ")+value()+one("", " "))
		}
	}
	for i := range random.IntN(12) { // with many lines the loop looks names up in a set
		lines = append(lines, fmt.Sprintf("X-Fill-%d: %d", i, i))
	}
	random.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	return lines
}

var (
	edgeOwnID   = regexp.MustCompile(`\b[0-9a-hj-km-np-tv-z]{26}\b`)
	edgeSeconds = regexp.MustCompile(`;t=\d+|Retry-After: \d+`)
	edgeID      = regexp.MustCompile(`(?m)^X-Request-Id: (.*)$`)
)

// The merged edge gives the same result as separate middleware, on each adapter, for any field lines, peer and trusted proxy,
// including the client that a request counts for.
func TestMergedEdgeEqualsSeparateMiddleware(t *testing.T) {
	const header6 = "\r\n\r\n\x00\r\nQUIT\n\x21\x21\x00\x24" // of the PROXY protocol; two addresses and two ports follow
	from6 := func(ip string) string {
		return header6 + string(net.ParseIP(ip).To16()) + string(net.IPv6loopback) + "\x13\x88\x00\x50"
	}
	proxied := dunlin.Config{Proxy: dunlin.ProxyConfig{Trusted: []string{"loopback", "10.0.0.0/8", "2001:db8::/32"}, Protocol: true}}
	for name, c := range map[string]struct {
		config dunlin.Config
		before []string // first bytes of the connection; nil for none
		unix   bool
	}{
		"none":           {},
		"the peer":       {config: dunlin.Config{Proxy: dunlin.ProxyConfig{Trusted: []string{"127.0.0.1"}}}},
		"several":        {config: dunlin.Config{Proxy: dunlin.ProxyConfig{Trusted: []string{"10.0.0.0/8", "192.0.2.7", "loopback", "2001:db8::/32"}}}},
		"others":         {config: dunlin.Config{Proxy: dunlin.ProxyConfig{Trusted: []string{"10.0.0.0/8"}}}},
		"of IPv6":        {config: dunlin.Config{Proxy: dunlin.ProxyConfig{Trusted: []string{"::1", "2001:db8::/32"}}}},
		"all":            {config: dunlin.Config{Proxy: dunlin.ProxyConfig{Trusted: []string{"0.0.0.0/0"}}}},
		"Forwarded":      {config: dunlin.Config{Proxy: dunlin.ProxyConfig{Trusted: []string{"loopback", "10.0.0.0/8"}, ForwardedHeader: "forwarded"}}},
		"another header": {config: dunlin.Config{Proxy: dunlin.ProxyConfig{Trusted: []string{"loopback", "10.0.0.0/8"}, ForwardedHeader: "X-Real-IP"}}},
		"the same":       {config: dunlin.Config{Proxy: dunlin.ProxyConfig{Trusted: []string{"loopback"}, ForwardedHeader: "x-request-id"}}},
		"PROXY": {config: proxied, before: []string{
			header1, header2, headerLocal, "PROXY TCP4 10.0.0.1 198.51.100.1 5000 80\r\n", from6("::ffff:203.0.113.7"), from6("::ffff:10.0.0.1"), from6("2001:db8::1"),
		}},
		"unix":         {config: dunlin.Config{Proxy: dunlin.ProxyConfig{Trusted: []string{"unix"}}}, unix: true},
		"strange unix": {unix: true},
	} {
		t.Run(name, func(t *testing.T) {
			adapters := Adapters
			if c.unix || c.before != nil {
				adapters = []Adapter{std, loop} // connections are created by the test
			}
			onAll(t, adapters, func(t *testing.T, engine dunlin.Engine) { edgesOver(t, engine, c.config, c.before, c.unix) })
		})
	}
}

func edgesOver(t *testing.T, engine dunlin.Engine, config dunlin.Config, before []string, unix bool) {
	config.Engine = engine
	config.Limits.MaxHead = 1 << 20
	register := func(app *dunlin.App) {
		for prefix, all := range map[string][]dunlin.Feature{"/joined": edgeOf(20), "/apart": apart(edgeOf(20))} {
			g := app.Group(prefix)
			g.Install(all...)
			same := dunlin.Text("the same for all")
			g.Handle("*", "/who", func(r *dunlin.Request) dunlin.Response { return dunlin.Text(r.ID() + " " + r.Remote().String()) })
			g.Handle("*", "/same", func(*dunlin.Request) dunlin.Response { return same })
			g.Handle("*", "/limited", func(r *dunlin.Request) dunlin.Response { return dunlin.JSON(r.ID()) }).Timeout(time.Hour)
			g.Handle("*", "/none", func(*dunlin.Request) dunlin.Response { return dunlin.NotFound() })
		}
	}
	var dial func() net.Conn
	if unix {
		path := filepath.Join(t.TempDir(), "s")
		ln, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		StartOn(t, config, ln, register)
		dial = func() net.Conn {
			conn, err := net.Dial("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			return patientConn{conn}
		}
	} else {
		addr, _ := Start(t, config, register)
		dial = func() net.Conn { return Dial(t, addr) }
	}
	if before == nil {
		before = []string{"", ""}
	}
	for i, first := range before {
		random := rand.New(rand.NewPCG(uint64(i), 23))
		conn := dial()
		br := bufio.NewReader(conn)
		Send(t, conn, first)
		for range 3 {
			var pairs [8][2]string
			raw := ""
			for i := range pairs { // in one write: requests follow each other in the same memory
				method := []string{"GET", "GET", "GET", "HEAD", "OPTIONS"}[random.IntN(5)]
				action := []string{"/who", "/who", "/same", "/limited", "/none"}[random.IntN(5)]
				lines := oddLines(random)
				pairs[i] = [2]string{Request(method+" /joined"+action, lines...), Request(method+" /apart"+action, lines...)}
				raw += pairs[i][0] + pairs[i][1]
			}
			Send(t, conn, raw)
			for _, pair := range pairs {
				var said [2]string
				for i, raw := range pair {
					answer, err := ReadAnswer(br, MethodOf(raw))
					if err != nil {
						t.Fatalf("%q: %v", raw, err)
					}
					id := edgeID.FindStringSubmatch(answer)
					if id == nil {
						t.Fatalf("%q: no identifier\n%s", raw, answer)
					}
					if _, body, _ := strings.Cut(answer, "\n\n"); edgeOwnID.MatchString(body) && edgeOwnID.FindString(body) != id[1] {
						t.Fatalf("%q: the action has another identifier than the answer\n%s", raw, answer)
					}
					said[i] = edgeSeconds.ReplaceAllString(edgeOwnID.ReplaceAllString(answer, "its own"), "seconds")
				}
				if said[0] != said[1] {
					t.Fatalf("%q\njoined: %s\napart: %s", pair[0], said[0], said[1])
				}
			}
		}
	}
}

// A cache distinguishes requests by the rerouting fields of proxies, however the names are written and over however many lines,
// on each adapter, and also where middleware has replaced the values.
func TestCacheReroutes(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		rewritten := func(next dunlin.Action) dunlin.Action {
			return func(r *dunlin.Request) dunlin.Response {
				return ext.WithHeaders(r, map[string]string{"x-host": r.Query("host"), "X-Original-Url": ""}, next)
			}
		}
		said := func(r *dunlin.Request) dunlin.Response {
			return dunlin.Text(strings.Join([]string{
				r.HeaderList("X-Forwarded-Host"), r.HeaderList("X-Host"), r.HeaderList("X-Original-URL"), r.HeaderList("Front-End-Https"), r.HeaderList("Forwarded"),
			}, "|")).CachePublic(time.Hour)
		}
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			cache := middleware.NewCache(middleware.CacheConfig{Key: func(*dunlin.Request) (string, bool) { return "", true }}).Middleware()
			app.Get("/sent", said, cache)
			app.Get("/rewritten", said, rewritten, cache)
			app.Get("/probe", Text("probe"))
		})
		for range 2 { // the second response comes from the cache
			for _, c := range []struct {
				path, want string
				lines      []string
			}{
				{"/sent", "||||", nil},
				{"/sent", "||||", []string{"X-Fill: 1", "X-Forwarded-For: 203.0.113.7", "X-Forwarded-Hosts: a", "Front-End: on"}},
				{"/sent", "a||||", []string{"x-forwarded-host: a"}},
				{"/sent", "b||||", []string{"X-FORWARDED-HOST: b"}},
				{"/sent", "a, b||||", []string{"X-Forwarded-Host: a", "x-forwarded-host: b"}},
				{"/sent", "|a|||", []string{"X-Host: a"}},
				{"/sent", "a|a|||", []string{"X-Host: a", "X-Forwarded-Host: a"}},
				{"/sent", "||/x||", []string{"x-original-url: /x"}},
				{"/sent", "|||on|", []string{"FRONT-END-HTTPS: on"}},
				{"/sent", "||||host=a", []string{"forwarded: host=a"}},
				{"/sent", "||/y||", append(strings.Split(strings.Repeat("X-Fill: 1\n", 15)+"X-Fill: 2", "\n"), "X-Original-Url: /y")},
				{"/rewritten", "||||", []string{"X-Host: a", "X-Original-URL: /x"}},
				{"/rewritten?host=b", "|b|||", []string{"X-Original-URL: /x"}},
				{"/rewritten?host=b", "a|b|||", []string{"x-host: c", "X-Forwarded-Host: a"}},
			} {
				answer := Exchange(t, addr, false, Request("GET "+c.path, c.lines...))[0]
				if _, body, _ := strings.Cut(answer, "\n\n"); body != c.want {
					t.Errorf("%s %q: got %q, want %q", c.path, c.lines, body, c.want)
				}
			}
		}
	})
}

// Concurrent requests for the same response get their own identifiers, whether from the client or from the server.
func TestEdgeIdentifiers(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		same := dunlin.Text("the same for all")
		more := same.With(dunlin.NewHeaderBlock("X-A", "a"))
		answer := func(r *dunlin.Request) dunlin.Response {
			switch len(r.Param("n")) % 5 {
			case 0:
				return more
			case 1:
				return dunlin.JSON("its own memory")
			case 2:
				return dunlin.NoContent()
			case 3:
				return same.Header("X-B", "b")
			}
			return same
		}
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Install(edgeOf(1 << 20)...)
			app.Get("/{n}", answer)
			app.Get("/timeout/{n}", answer).Timeout(time.Hour)
		})
		var mu sync.Mutex
		seen := map[string]bool{}
		var all sync.WaitGroup
		for c := range 6 {
			conn := Dial(t, addr)
			all.Go(func() {
				br := bufio.NewReader(conn)
				for round := range 8 {
					var ids [20]string
					raw := ""
					for i := range ids {
						path := "GET /" + []string{"", "timeout/"}[i/7%2] + strings.Repeat("n", 1+i*round%7)
						if i%3 != 0 {
							ids[i] = fmt.Sprintf("client-%d-%d-%d%s", c, round, i, strings.Repeat("x", i))
							raw += Request(path, "X-Request-ID: "+ids[i])
						} else {
							raw += Request(path)
						}
					}
					if _, err := conn.Write([]byte(raw)); err != nil {
						t.Error(err)
						return
					}
					for i, own := range ids {
						answer, err := ReadAnswer(br, "GET")
						if err != nil {
							t.Error(err)
							return
						}
						id := edgeID.FindAllStringSubmatch(answer, -1)
						switch {
						case len(id) != 1, own != "" && id[0][1] != own:
							t.Errorf("request %d, of %q: got %s", i, own, answer)
						case own == "":
							mu.Lock()
							if seen[id[0][1]] || !edgeOwnID.MatchString(id[0][1]) {
								t.Errorf("%q is another's", id[0][1])
							}
							seen[id[0][1]] = true
							mu.Unlock()
						}
					}
				}
			})
		}
		all.Wait()
	})
}

// A late response has the identifier that the edge has read. The action is still running and requests it, too.
func TestEdgeLate(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		seen := make(chan string, 100)
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Install(edgeOf(1 << 20)...)
			app.Get("/", func(r *dunlin.Request) dunlin.Response {
				ended := r.Context().Done()
				for {
					select {
					case <-ended:
						seen <- r.ID()
						return dunlin.Text("late")
					default:
						_ = r.ID() // while the late response reads it
						runtime.Gosched()
					}
				}
			}).Timeout(50 * time.Millisecond) // before it has passed, the edge must have read the identifier
		})
		for i := range 6 {
			own := ""
			request := Request("GET /")
			if i%3 != 0 {
				own = fmt.Sprintf("client-%d", i)
				request = Request("GET /", "X-Request-ID: "+own)
			}
			answer, err := ReadAnswer(bufio.NewReader(AskConn(t, addr, request)), "GET")
			if err != nil {
				t.Fatal(err)
			}
			id := edgeID.FindAllStringSubmatch(answer, -1)
			if known := Await(t, "the action", seen); !strings.HasPrefix(answer, "HTTP/1.1 503 ") || len(id) != 1 || id[0][1] != known || own != "" && own != known {
				t.Errorf("the action's is %q, the client's %q: got %s", known, own, answer)
			}
		}
	})
}
