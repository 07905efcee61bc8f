package interop_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/elazarl/goproxy"
	"github.com/mccutchen/go-httpbin/v2/httpbin"
	"golang.org/x/net/webdav"

	"github.com/dunlinhttp/dunlin"
)

// A step is a request to a program, whose response must be the same as on net/http.
type step struct {
	method, path, body string
	headers            []string // alternating names and values
}

// sameAsNetHTTP sends the steps to a program on net/http and on each engine, and compares the responses. fresh returns the
// program without state of earlier requests.
func sameAsNetHTTP(t *testing.T, fresh func(t *testing.T) http.Handler, steps []step) {
	t.Helper()
	control := httptest.NewServer(fresh(t))
	defer control.Close()
	want := answersOf(t, control.URL, steps)
	onEngines(t, func(t *testing.T, app *dunlin.App) {
		app.Mount("/", fresh(t)).UncleanPaths(dunlin.UncleanPathsServe)
	}, func(t *testing.T, url string) {
		for i, got := range answersOf(t, url, steps) {
			if got != want[i] {
				t.Errorf("%s %s:\n%s\non net/http:\n%s", steps[i].method, steps[i].path, got, want[i])
			}
		}
	})
}

// answersOf returns the responses of a program, without the parts that differ from run to run.
func answersOf(t *testing.T, base string, steps []step) (answers []string) {
	t.Helper()
	host := strings.TrimPrefix(base, "http://")
	for _, s := range steps {
		headers := slices.Clone(s.headers)
		for i := range headers {
			headers[i] = strings.ReplaceAll(headers[i], "HOST", host)
		}
		resp, body := ask(t, s.method, base+s.path, s.body, headers...)
		resp.Header.Del("Date")
		resp.Header.Del("Content-Length") // net/http computes it for bodies up to 2 KB, Dunlin up to 32 KB
		if resp.StatusCode == http.StatusCreated {
			resp.Header.Del("Etag") // depends on the time
		}
		var b strings.Builder
		fmt.Fprintf(&b, "%s\n", resp.Status)
		for _, name := range slices.Sorted(maps.Keys(resp.Header)) {
			fmt.Fprintf(&b, "%s: %q\n", name, resp.Header[name])
		}
		fmt.Fprintf(&b, "%q %v", body, resp.Trailer)
		answers = append(answers, strings.ReplaceAll(b.String(), host, "HOST"))
	}
	return answers
}

func TestHTTPBin(t *testing.T) {
	const form = "Content-Type"
	sameAsNetHTTP(t, func(*testing.T) http.Handler { return httpbin.New() }, []step{
		{method: "GET", path: "/"},
		{method: "GET", path: "/get?a=1&a=2&b=%20x", headers: []string{"X-Own", "1"}},
		{method: "HEAD", path: "/get"},
		{method: "POST", path: "/post?q=1", body: "a=1&b=2", headers: []string{form, "application/x-www-form-urlencoded"}},
		{method: "POST", path: "/post", body: "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"x\"\r\n\r\nfile\r\n--b--\r\n", headers: []string{form, "multipart/form-data; boundary=b"}},
		{method: "PUT", path: "/put", body: `{"a":1}`, headers: []string{form, "application/json"}},
		{method: "PATCH", path: "/patch", body: strings.Repeat("x", 200_000)},
		{method: "DELETE", path: "/delete"},
		{method: "GET", path: "/delete"},
		{method: "GET", path: "/status/418"},
		{method: "GET", path: "/status/204"},
		{method: "GET", path: "/status/304"},
		{method: "GET", path: "/status/407"},
		{method: "GET", path: "/headers", headers: []string{"Accept", "a/b", "X-Two", "1, 2"}},
		{method: "GET", path: "/response-headers?X-Own=1&X-Own=2&Content-Type=text/x"},
		{method: "GET", path: "/redirect/2"},
		{method: "GET", path: "/redirect-to?url=/get&status_code=307"},
		{method: "GET", path: "/cookies/set?a=1"},
		{method: "GET", path: "/cookies", headers: []string{"Cookie", "a=1; b=2"}},
		{method: "GET", path: "/basic-auth/u/p"},
		{method: "GET", path: "/basic-auth/u/p", headers: []string{"Authorization", "Basic dTpw"}},
		{method: "GET", path: "/bearer"},
		{method: "GET", path: "/stream/5"},
		{method: "GET", path: "/stream-bytes/100000?seed=1&chunk_size=1000"},
		{method: "GET", path: "/bytes/100000?seed=1"},
		{method: "GET", path: "/range/10000", headers: []string{"Range", "bytes=5-1004"}},
		{method: "GET", path: "/range/10000", headers: []string{"Range", "bytes=20000-"}},
		{method: "GET", path: "/drip?numbytes=10&duration=0.01s&delay=0"},
		{method: "GET", path: "/delay/0.01"},
		{method: "GET", path: "/cache", headers: []string{"If-None-Match", "x"}},
		{method: "GET", path: "/etag/e", headers: []string{"If-None-Match", `"e"`}},
		{method: "GET", path: "/html"},
		{method: "GET", path: "/xml"},
		{method: "GET", path: "/image/png"},
		{method: "GET", path: "/links/3/1"},
		{method: "GET", path: "/base64/aGVsbG8="},
		{method: "GET", path: "/trailers?X-Sum=1"},
		{method: "GET", path: "/absolute-redirect/2"},
		{method: "GET", path: "/nowhere"},
		{method: "OPTIONS", path: "/get", headers: []string{"Origin", "http://o.example", "Access-Control-Request-Method", "GET"}},
	})
}

func TestWebDAV(t *testing.T) {
	const find = `<?xml version="1.0"?><propfind xmlns="DAV:"><prop><resourcetype/><getcontentlength/></prop></propfind>`
	const props = `<?xml version="1.0"?><propertyupdate xmlns="DAV:"><set><prop><a xmlns="urn:x">1</a></prop></set></propertyupdate>`
	large := strings.Repeat("0123456789", 30_000)
	sameAsNetHTTP(t, func(*testing.T) http.Handler {
		return &webdav.Handler{FileSystem: webdav.NewMemFS(), LockSystem: webdav.NewMemLS()}
	}, []step{
		{method: "OPTIONS", path: "/"},
		{method: "MKCOL", path: "/dir"},
		{method: "MKCOL", path: "/dir"},
		{method: "MKCOL", path: "/none/dir"},
		{method: "MKCOL", path: "/body", body: "x"},
		{method: "PUT", path: "/dir/file%20a", body: "hello"},
		{method: "PUT", path: "/dir/large", body: large},
		{method: "PUT", path: "/none/file", body: large},
		{method: "COPY", path: "/dir/file%20a", headers: []string{"Destination", "http://HOST/dir/copy"}},
		{method: "COPY", path: "/dir/file%20a", headers: []string{"Destination", "http://HOST/dir/copy", "Overwrite", "F"}},
		{method: "MOVE", path: "/dir/copy", headers: []string{"Destination", "http://HOST/moved"}},
		{method: "MOVE", path: "/dir/copy", headers: []string{"Destination", "http://other.example/moved"}},
		{method: "PROPFIND", path: "/dir/large", body: find, headers: []string{"Depth", "0"}},
		{method: "PROPFIND", path: "/nowhere", body: find},
		{method: "PROPFIND", path: "/", body: "no XML"},
		{method: "PROPPATCH", path: "/moved", body: props},
		{method: "LOCK", path: "/moved", body: "no XML"},
		{method: "UNLOCK", path: "/moved", headers: []string{"Lock-Token", "<none>"}},
		{method: "DELETE", path: "/dir"},
		{method: "DELETE", path: "/dir"},
	})
	onEngines(t, func(_ *testing.T, app *dunlin.App) {
		app.Mount("/", &webdav.Handler{FileSystem: webdav.NewMemFS(), LockSystem: webdav.NewMemLS()})
	}, func(t *testing.T, url string) {
		if resp, body := ask(t, "PUT", url+"/large", large); resp.StatusCode != http.StatusCreated {
			t.Fatalf("got %s %s", resp.Status, body)
		}
		if resp, body := ask(t, "GET", url+"/large", "", "Range", "bytes=9-200008"); resp.StatusCode != http.StatusPartialContent || body != large[9:200009] {
			t.Errorf("%s, %d bytes", resp.Status, len(body))
		}
	})
}

// The keys of an object store may contain empty segments.
func TestPathsOfObjectStore(t *testing.T) {
	echo := func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%q %q %q", r.URL.Path, r.URL.EscapedPath(), r.RequestURI)
	}
	sameAsNetHTTP(t, func(*testing.T) http.Handler { return http.HandlerFunc(echo) }, []step{
		{method: "GET", path: "/bucket//key"},
		{method: "GET", path: "/bucket/a//b///c/"},
		{method: "GET", path: "//bucket/./a/../b"},
		{method: "PUT", path: "/bucket/a%2F%2Fb%20c", body: "x"},
		{method: "GET", path: "/bucket/a+b?list-type=2&prefix=a%2F"},
	})
}

// connectByHand is a CONNECT proxy as many programs implement it: it answers 200 and hijacks the connection.
func connectByHand(w http.ResponseWriter, r *http.Request) {
	target, err := net.Dial("tcp", r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer target.Close()
	w.WriteHeader(http.StatusOK)
	client, rw, err := w.(http.Hijacker).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer client.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(target, rw)
		_ = target.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(client, target)
	_ = client.Close()
	<-done
}

func TestConnectProxies(t *testing.T) {
	behind := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(bytes.ToUpper(body))
	}))
	defer behind.Close()
	for name, proxy := range map[string]http.Handler{"by hand": http.HandlerFunc(connectByHand), "goproxy": goproxy.NewProxyHttpServer()} {
		t.Run(name, func(t *testing.T) {
			onEngines(t, func(_ *testing.T, app *dunlin.App) { app.Mount("/", proxy) }, func(t *testing.T, at string) {
				proxied, err := url.Parse(at)
				if err != nil {
					t.Fatal(err)
				}
				transport := &http.Transport{Proxy: http.ProxyURL(proxied), TLSClientConfig: &tls.Config{RootCAs: behind.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}}
				defer transport.CloseIdleConnections()
				client := &http.Client{Transport: transport, Timeout: patience}
				sent := strings.Repeat("hello, world ", 50_000)
				resp, err := client.Post(behind.URL, "text/plain", strings.NewReader(sent))
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				if got, err := io.ReadAll(resp.Body); err != nil || string(got) != strings.ToUpper(sent) {
					t.Errorf("%d bytes, %v, want %d", len(got), err, len(sent))
				}
			})
		})
	}
}

// A store of resumable uploads stores the received part of an upload when its client aborts. The error of the read
// distinguishes an aborted from a complete upload.
func TestUploadThatBreaksOff(t *testing.T) {
	type outcome struct {
		n   int
		err error
	}
	ended := make(chan outcome, 1)
	onEngines(t, func(_ *testing.T, app *dunlin.App) {
		app.Mount("/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			data, err := io.ReadAll(r.Body)
			ended <- outcome{len(data), err}
		}))
	}, func(t *testing.T, at string) {
		for _, framing := range []string{"Content-Length: 1000000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\nf4240\r\n"} {
			conn, err := net.Dial("tcp", strings.TrimPrefix(at, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			w := bufio.NewWriter(conn)
			fmt.Fprintf(w, "PATCH /upload HTTP/1.1\r\nHost: a\r\n%s%s", framing, strings.Repeat("x", 100_000))
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			_ = conn.Close()
			if got := await(t, "the end of the upload", ended); got != (outcome{100_000, io.ErrUnexpectedEOF}) {
				t.Errorf("%.20q: got %v", framing, got)
			}
		}
	})
}
