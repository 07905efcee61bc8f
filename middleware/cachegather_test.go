package middleware_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
)

// longText returns n bytes that contain no repeated part.
func longText(n int) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%d ", i)
	}
	return b.Bytes()[:n]
}

// inPieces writes text in pieces of the given size.
func inPieces(w io.Writer, text []byte, piece int) error {
	for len(text) > 0 {
		n := min(piece, len(text))
		if _, err := w.Write(text[:n]); err != nil {
			return err
		}
		text = text[n:]
	}
	return nil
}

// bothProtocols configures an app for HTTP/1.1 and HTTP/2.
var bothProtocols = dunlin.Config{Logger: quiet.Logger, H2C: dunlin.H2CPriorKnowledge}

// protocols returns an HTTP/1.1 and an HTTP/2 client.
func protocols() map[string]*http.Client {
	two := new(http.Protocols)
	two.SetUnencryptedHTTP2(true)
	return map[string]*http.Client{
		"HTTP/1.1": {Transport: &http.Transport{}, Timeout: 20 * time.Second},
		"HTTP/2":   {Transport: &http.Transport{Protocols: two}, Timeout: 20 * time.Second},
	}
}

// fetchBy sends a request with header fields given as alternating names and values. It returns the response and its body.
func fetchBy(t *testing.T, c *http.Client, method, url string, headers ...string) (*http.Response, []byte, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := c.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, body, err
}

// sources returns an action for each way to send a long body. Each sends text with a freshness lifetime of one minute.
func sources(t *testing.T, text []byte) map[string]dunlin.Action {
	handler := func(sized bool) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Cache-Control", "max-age=60")
			w.Header().Set("Content-Type", "text/plain")
			w.Header().Set("Etag", `"one"`)
			if sized {
				w.Header().Set("Content-Length", strconv.Itoa(len(text)))
			}
			_ = inPieces(w, text, 3000)
		})
	}
	all := map[string]dunlin.Action{
		"Stream": func(*dunlin.Request) dunlin.Response {
			return dunlin.Stream("text/plain", func(w io.Writer) error { return inPieces(w, text, 5000) }).CachePublic(time.Minute).Header("Etag", `"one"`)
		},
		"Reader": func(*dunlin.Request) dunlin.Response {
			return dunlin.Stream("text/plain", func(w io.Writer) error { _, err := io.Copy(w, bytes.NewReader(text)); return err }).CachePublic(time.Minute).Header("Etag", `"one"`)
		},
		"FS": func(*dunlin.Request) dunlin.Response {
			return dunlin.FS(fstest.MapFS{"a.txt": {Data: text}}, "a.txt").CachePublic(time.Minute).Header("Etag", `"one"`)
		},
	}
	for name, sized := range map[string]bool{"sized": true, "unsized": false} {
		all["FromStd-"+name] = dunlin.FromStd(handler(sized))
		behind := httptest.NewServer(handler(sized))
		t.Cleanup(behind.Close)
		target, _ := url.Parse(behind.URL)
		all["Proxy-"+name] = middleware.Proxy(middleware.ProxyConfig{Target: target})
	}
	return all
}

// The cache stores streamed responses of up to MaxEntry bytes, and serves every kind of request from them, as from complete
// responses.
func TestCacheStoresStreams(t *testing.T) {
	for _, size := range []int{0, 100, 20_000, 32 << 10, 100_000, 1 << 20} {
		text := longText(size)
		onEnginesWith(t, bothProtocols, func(t *testing.T, app *dunlin.App, serve func() string) {
			var runs atomic.Int64
			cache := middleware.NewCache(middleware.CacheConfig{App: app})
			g := app.Group("", cache.Middleware())
			all := sources(t, text)
			for name, act := range all {
				g.Get("/"+name+"/{by}", func(r *dunlin.Request) dunlin.Response { runs.Add(1); return act(r) })
			}
			addr := serve()
			for by, client := range protocols() {
				for name := range all {
					at := fmt.Sprintf("%s, %d bytes, by %s", name, size, by)
					url := "http://" + addr + "/" + name + "/" + by[5:]
					runs.Store(0)
					for i, status := range []string{"", "Dunlin; hit"} {
						resp, body, err := fetchBy(t, client, "GET", url)
						if err != nil || resp.StatusCode != 200 || !bytes.Equal(body, text) {
							t.Fatalf("%s, request %d: got error %v, response %v, %d bytes", at, i, err, resp, len(body))
						}
						if got := resp.Header.Get("Cache-Status"); status != "" && got != status || got == "" {
							t.Errorf("%s, request %d: got Cache-Status %q", at, i, got)
						}
						if sized := strings.HasSuffix(name, "-sized") || name == "FS"; (sized || i == 1) && resp.ContentLength != int64(size) {
							t.Errorf("%s, request %d: got Content-Length %d", at, i, resp.ContentLength)
						}
					}
					if size > 10 {
						resp, body, err := fetchBy(t, client, "GET", url, "Range", "bytes=3-9")
						if err != nil || resp.StatusCode != 206 || !bytes.Equal(body, text[3:10]) {
							t.Errorf("%s, Range: got error %v, response %v, body %q", at, err, resp, body)
						}
					}
					if resp, body, err := fetchBy(t, client, "HEAD", url); err != nil || resp.ContentLength != int64(size) || len(body) > 0 {
						t.Errorf("%s, HEAD: got error %v, response %v", at, err, resp)
					}
					if resp, _, err := fetchBy(t, client, "GET", url, "If-None-Match", `"one"`); err != nil || resp.StatusCode != 304 {
						t.Errorf("%s, If-None-Match: got error %v, response %v", at, err, resp)
					}
					if n := runs.Load(); n != 1 {
						t.Errorf("%s: got %d runs of the action", at, n)
					}
				}
				client.CloseIdleConnections()
			}
			if s := cache.Stats(); s.Bytes != app.Stats().Memory.HeldFor["cache"] || s.Bytes < int64(size*2*len(all)) {
				t.Errorf("got cache statistics %+v, and %v charged to the app", s, app.Stats().Memory.HeldFor)
			}
			cache.Clear()
			if s := cache.Stats(); s.Bytes != 0 {
				t.Errorf("after Clear: got %+v, want an empty cache", s)
			}
		})
	}
}

// The cache stores no truncated, oversized or no-store response. The client still gets the bytes that were sent.
func TestCacheDoesNotStoreBrokenStreams(t *testing.T) {
	text := longText(100_000)
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		if r.URL.Path == "/proxy-sized" {
			w.Header().Set("Content-Length", "200000")
		}
		_, _ = w.Write(text)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(behind.Close)
	target, _ := url.Parse(behind.URL)
	handler := func(f func(w http.ResponseWriter)) dunlin.Action {
		return dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Cache-Control", "max-age=60")
			f(w)
		}))
	}
	for name, test := range map[string]struct {
		act   dunlin.Action
		whole bool // the client gets the entire response
	}{
		"stream-error": {act: func(*dunlin.Request) dunlin.Response {
			return dunlin.Stream("text/plain", func(w io.Writer) error { return errors.Join(inPieces(w, text, 9000), errors.New("no more")) }).CachePublic(time.Minute)
		}},
		"stream-panic": {act: func(*dunlin.Request) dunlin.Response {
			return dunlin.Stream("text/plain", func(w io.Writer) error { _ = inPieces(w, text, 9000); panic("no more") }).CachePublic(time.Minute)
		}},
		"stream-late-error": {whole: true, act: func(*dunlin.Request) dunlin.Response { // answered with 500
			return dunlin.Stream("text/plain", func(w io.Writer) error { return errors.New("not at all") }).CachePublic(time.Minute)
		}},
		"too-large": {whole: true, act: func(*dunlin.Request) dunlin.Response {
			return dunlin.Stream("text/plain", func(w io.Writer) error { return inPieces(w, longText(150_001), 9000) }).CachePublic(time.Minute)
		}},
		"no-store": {whole: true, act: func(*dunlin.Request) dunlin.Response {
			return dunlin.Stream("text/plain", func(w io.Writer) error { return inPieces(w, text, 9000) }).Header("Cache-Control", "no-store, max-age=9")
		}},
		"abort": {act: handler(func(w http.ResponseWriter) { _, _ = w.Write(text); panic(http.ErrAbortHandler) })},
		"short": {act: handler(func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "100001")
			_, _ = w.Write(text)
		})},
		"sized-too-large": {whole: true, act: handler(func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "150001")
			_, _ = w.Write(longText(150_001))
		})},
		"trailers": {whole: true, act: handler(func(w http.ResponseWriter) {
			_, _ = w.Write(text)
			w.Header().Set(http.TrailerPrefix+"X-Sum", "1")
		})},
		"announced-trailers": {whole: true, act: handler(func(w http.ResponseWriter) {
			w.Header().Set("Trailer", "X-Sum")
			_, _ = w.Write(text)
		})},
		"proxy-chunked": {act: middleware.Proxy(middleware.ProxyConfig{Target: target})},
		"proxy-sized":   {act: middleware.Proxy(middleware.ProxyConfig{Target: target})},
	} {
		onEnginesWith(t, bothProtocols, func(t *testing.T, app *dunlin.App, serve func() string) {
			var runs atomic.Int64
			cache := middleware.NewCache(middleware.CacheConfig{MaxEntry: 150_000})
			app.Get("/"+name, func(r *dunlin.Request) dunlin.Response { runs.Add(1); return test.act(r) }, cache.Middleware())
			url := "http://" + serve() + "/" + name
			for by, client := range protocols() {
				runs.Store(0)
				for range 2 {
					resp, body, err := fetchBy(t, client, "GET", url)
					if (err == nil) != test.whole {
						t.Errorf("%s, %s: got response %v with %d bytes, error %v", name, by, resp, len(body), err)
					}
				}
				if n := runs.Load(); n != 2 {
					t.Errorf("%s, %s: got %d runs of the action", name, by, n)
				}
				client.CloseIdleConnections()
			}
			if s := cache.Stats(); s.Bytes != 0 || s.Entries != 0 {
				t.Errorf("%s: got %+v", name, s)
			}
		})
	}
}

// A response is forwarded piece by piece while the cache copies it.
func TestCacheForwardsPieces(t *testing.T) {
	onEnginesWith(t, bothProtocols, func(t *testing.T, app *dunlin.App, serve func() string) {
		next := make(chan string)
		cache := middleware.NewCache(middleware.CacheConfig{})
		app.Get("/", func(*dunlin.Request) dunlin.Response {
			return dunlin.Stream("text/plain", func(w io.Writer) error {
				for s := range next {
					if _, err := io.WriteString(w, s); err != nil {
						return err
					}
					if err := dunlin.Flush(w); err != nil {
						return err
					}
				}
				return nil
			}).CachePublic(time.Minute)
		}, cache.Middleware())
		url := "http://" + serve() + "/"
		req, _ := http.NewRequestWithContext(t.Context(), "GET", url, nil)
		answered := make(chan *http.Response)
		go func() {
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Error(err)
			}
			answered <- resp
		}()
		next <- "one "
		resp := <-answered
		defer resp.Body.Close()
		for _, s := range []string{"one ", "two ", "three"} {
			got := make([]byte, len(s))
			if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != s {
				t.Fatalf("got %q, error %v, want %q", got, err, s)
			}
			switch s {
			case "one ":
				next <- "two "
			case "two ":
				next <- "three"
			}
		}
		if s := cache.Stats(); s.Stored != 0 || s.Bytes == 0 {
			t.Errorf("before the end of the stream: got %+v", s)
		}
		close(next)
		if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) > 0 {
			t.Fatalf("got %q %v", rest, err)
		}
		if resp, body, err := fetchBy(t, http.DefaultClient, "GET", url); err != nil || string(body) != "one two three" || resp.Header.Get("Cache-Status") != "Dunlin; hit" {
			t.Errorf("got response %v, body %q, error %v", resp, body, err)
		}
	})
}

// Of many concurrent misses of a streamed response, one runs the action and all get the same body.
func TestCacheStreamMissesRunActionOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := longText(100_000)
		k := newCachedApp(middleware.CacheConfig{}, func(*dunlin.Request, int64) dunlin.Response {
			<-time.After(time.Second) // until all requests have arrived
			return dunlin.Stream("text/plain", func(w io.Writer) error { return inPieces(w, text, 5000) }).CachePublic(time.Minute)
		})
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() { is(t, "a concurrent request", k.get("/items/1"), string(text)) })
		}
		wg.Wait()
		if n := k.runs.Load(); n != 1 {
			t.Errorf("got %d runs of the action", n)
		}
	})
}

// A slowWriter blocks in Write until allowed is closed or has a value.
type slowWriter struct {
	*httptest.ResponseRecorder
	allowed <-chan struct{}
}

func (w *slowWriter) Write(p []byte) (int, error) {
	<-w.allowed
	return w.ResponseRecorder.Write(p)
}

// A stalled client delays other requests only briefly. Its late response does not replace a newer entry.
func TestCacheSlowClientDelaysNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newCachedApp(middleware.CacheConfig{}, func(_ *dunlin.Request, n int64) dunlin.Response {
			return dunlin.Stream("text/plain", func(w io.Writer) error {
				if err := inPieces(w, longText(50_000), 5000); err != nil {
					return err
				}
				_, err := fmt.Fprint(w, "run ", n)
				return err
			}).CachePublic(time.Minute)
		})
		long := string(longText(50_000))
		may := make(chan struct{})
		slow := &slowWriter{httptest.NewRecorder(), may}
		var wg sync.WaitGroup
		wg.Go(func() { k.ServeHTTP(slow, httptest.NewRequest("GET", "/items/1", nil)) })
		synctest.Wait()
		began := time.Now()
		var others sync.WaitGroup
		for range 20 {
			others.Go(func() { is(t, "another", k.get("/items/1"), long+"run 2") })
		}
		others.Wait()
		if waited := time.Since(began); waited > time.Second { // on the test's fake clock
			t.Errorf("other requests waited %v", waited)
		}
		close(may)
		wg.Wait()
		is(t, "the slow client", slow.ResponseRecorder, long+"run 1")
		is(t, "the next request", k.get("/items/1"), long+"run 2")
	})
}

// Copies of stalled clients are evicted before stored entries, and are released when those clients end.
func TestCacheEvictsStalledCopiesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 20_000
		k := newCachedApp(middleware.CacheConfig{MaxBytes: 10 * size, MaxEntry: 2 * size}, func(*dunlin.Request, int64) dunlin.Response {
			return dunlin.Stream("text/plain", func(w io.Writer) error { return inPieces(w, longText(size), 5000) }).CachePublic(time.Hour)
		})
		k.get("/items/kept")
		may := make(chan struct{})
		var wg sync.WaitGroup
		for i := range 30 {
			wg.Go(func() {
				k.ServeHTTP(&slowWriter{httptest.NewRecorder(), may}, httptest.NewRequest("GET", fmt.Sprint("/items/slow", i), nil))
			})
		}
		synctest.Wait()
		if s := k.cache.Stats(); s.Bytes > 10*size*3/4 || s.Entries != 1 {
			t.Errorf("while clients are stalled: got %+v", s)
		}
		<-time.After(2 * time.Second)
		for i := range 8 {
			k.get(fmt.Sprint("/items/", i))
		}
		if s := k.cache.Stats(); s.Stored != 9 || s.Bytes > 10*size {
			t.Errorf("after other responses: got %+v", s)
		}
		k.cache.Clear()
		close(may)
		wg.Wait()
		k.cache.Clear()
		if s := k.cache.Stats(); s.Bytes != 0 || s.Entries != 0 {
			t.Errorf("after all clients have ended: got %+v", s)
		}
	})
}

// The response to a client that disconnects is not stored, even when the stream ends without an error.
func TestCacheStreamClientDisconnects(t *testing.T) {
	onEnginesWith(t, bothProtocols, func(t *testing.T, app *dunlin.App, serve func() string) {
		ended := make(chan struct{}, 1)
		cache := middleware.NewCache(middleware.CacheConfig{})
		app.Get("/", func(r *dunlin.Request) dunlin.Response {
			return dunlin.Stream("text/plain", func(w io.Writer) error {
				_, _ = io.WriteString(w, "a part")
				_ = dunlin.Flush(w)
				<-r.Context().Done()
				return nil
			}).CachePublic(time.Minute)
		}, cache.Middleware())
		app.Install(dunlin.Hooks{Observe: func(*dunlin.AnswerInfo) { ended <- struct{}{} }})
		conn, err := net.Dial("tcp", serve())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		_, _ = io.ReadAtLeast(conn, make([]byte, 1000), 10)
		conn.Close()
		<-ended
		if s := cache.Stats(); s.Stored != 0 || s.Bytes != 0 {
			t.Errorf("got %+v", s)
		}
	})
}

// A background request refreshes a long stale response while clients get the stale one. A 304 renews it.
func TestCacheStreamsStale(t *testing.T) {
	onEnginesWith(t, bothProtocols, func(t *testing.T, app *dunlin.App, serve func() string) {
		var asked atomic.Int64
		runs := map[string]*atomic.Int64{"": {}, "same": {}} // separate counters: one entry may be refreshed while the other is requested
		behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "max-age=1, stale-while-revalidate=60")
			w.Header()["Date"] = nil // a Date in whole seconds can make a new response up to one second old, its maximum age
			w.Header().Set("Etag", `"`+r.URL.Query().Get("etag")+`"`)
			if r.Header.Get("If-None-Match") == `"same"` {
				asked.Add(1)
				w.WriteHeader(304)
				return
			}
			n := runs[r.URL.Query().Get("etag")].Add(1)
			if r.URL.Query().Get("etag") == "" {
				w.Header().Set("Etag", fmt.Sprintf(`"%d"`, n))
			}
			_ = inPieces(w, append(longText(100_000), fmt.Sprint("run ", n)...), 9000)
		}))
		t.Cleanup(behind.Close)
		target, _ := url.Parse(behind.URL)
		cache := middleware.NewCache(middleware.CacheConfig{App: app})
		app.Get("/", middleware.Proxy(middleware.ProxyConfig{Target: target}), cache.Middleware())
		url := "http://" + serve() + "/"
		get := func(query string) (string, string) {
			resp, body, err := fetchBy(t, http.DefaultClient, "GET", url+query)
			if err != nil || len(body) < 100_000 {
				t.Fatalf("got %d bytes, error %v", len(body), err)
			}
			return string(body[100_000:]), resp.Header.Get("Cache-Status")
		}
		for _, query := range []string{"", "?etag=same"} {
			if body, _ := get(query); body != "run 1" {
				t.Errorf("first request: got %q", body)
			}
			before := cache.Stats()
			renewed := func() bool {
				if query == "" {
					return cache.Stats().Stored > before.Stored
				}
				return cache.Stats().Renewed > before.Renewed
			}
			for !renewed() { // until the entry is stale and refreshed
				if body, _ := get(query); body != "run 1" && query != "" {
					t.Errorf("during the refresh: got %q", body)
				}
			}
			body, status := get(query)
			if same := body == "run 1"; same != (query != "") || !strings.HasPrefix(status, "Dunlin; hit") {
				t.Errorf("%s after the refresh: got %q %s", query, body, status)
			}
		}
		if asked.Load() == 0 || cache.Stats().Renewed == 0 {
			t.Errorf("got %d requests to the action, %+v", asked.Load(), cache.Stats())
		}
	})
}
