package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/openapi"
	"github.com/dunlinhttp/dunlin/store"
	"github.com/dunlinhttp/dunlin/typed"
)

const base = "https://links.example"

// newTest returns the service, its app, and a browser that has logged in.
func newTest(t *testing.T) (*service, *dunlin.App, *http.Client) {
	s := newService(store.NewMemory(store.MemoryConfig{}), slog.New(slog.DiscardHandler))
	s.accounts.add("ada", "correct horse", 1)
	app := s.app(dunlin.Config{Logger: s.log})
	browser := dunlintest.NewClient(app)
	browser.Jar, _ = cookiejar.New(nil)
	browser.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := browser.PostForm(base+"/login", url.Values{"name": {"ada"}, "password": {"correct horse"}})
	if err != nil || resp.StatusCode != 303 {
		t.Fatalf("login: got %v, %v", resp, err)
	}
	return s, app, browser
}

// send sends JSON and returns the status and the body.
func send(t *testing.T, client *http.Client, method, path, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(method, base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

func TestLinksAreCreatedAndFollowed(t *testing.T) {
	_, _, browser := newTest(t)
	resp, body := send(t, browser, "POST", "/api/links", `{"url":"https://example.com/","code":"home"}`)
	if resp.StatusCode != 201 || resp.Header.Get("Location") != "/home" {
		t.Fatalf("create: got %d %s", resp.StatusCode, body)
	}
	resp, _ = send(t, browser, "GET", "/home", "")
	if resp.StatusCode != 302 || resp.Header.Get("Location") != "https://example.com/" {
		t.Errorf("follow: got %d %v", resp.StatusCode, resp.Header)
	}
	if resp, body := send(t, browser, "POST", "/api/links", `{"url":"javascript:alert(1)"}`); resp.StatusCode != 400 || !strings.Contains(body, `"#/url"`) {
		t.Errorf("text that is not a link: got %d %s", resp.StatusCode, body)
	}
}

// If two clients change the same version, the second is told of the first change.
func TestChangesAtTheSameTime(t *testing.T) {
	_, _, browser := newTest(t)
	send(t, browser, "POST", "/api/links", `{"url":"https://example.com/","code":"home"}`)
	read, _ := send(t, browser, "GET", "/api/links/home", "")
	tag := read.Header.Get("ETag")
	for _, c := range []struct {
		name, tag string
		status    int
	}{
		{"the first", tag, 200},
		{"the second", tag, 412},
		{"one of several", `"x", "home-1"`, 200},
		{"a weak tag", `W/"home-2"`, 412},
		{"whatever it is", "*", 200},
	} {
		if resp, body := send(t, browser, "PUT", "/api/links/home", `{"url":"https://example.com/new"}`, "If-Match", c.tag); resp.StatusCode != c.status {
			t.Errorf("%s: got %d %s", c.name, resp.StatusCode, body)
		}
	}
	if resp, body := send(t, browser, "PUT", "/api/links/home", `{"url":"https://example.com/new"}`); resp.StatusCode != 400 || !strings.Contains(body, "If-Match") {
		t.Errorf("without If-Match: got %d %s", resp.StatusCode, body)
	}
}

func TestTyped(t *testing.T) {
	s, app, _ := newTest(t)
	create := typed.Post(app, "/test/links", s.create).Faults(codeTaken)
	var in CreateLink
	in.Body.URL, in.Body.Code = "https://example.com/", "twice"
	if x := create.Test(t, app, in); x.Out.Location != "/twice" {
		t.Errorf("got %d %s", x.Status, x.Body)
	}
	if x := create.Test(t, app, in); !errors.Is(x.Problem, codeTaken) {
		t.Errorf("again: got %d %s", x.Status, x.Body)
	}
	if _, err := openapi.Document(app, openapi.Config{}); err != nil {
		t.Error(err)
	}
}

func TestWhoMay(t *testing.T) {
	_, app, browser := newTest(t)
	if resp, _ := send(t, dunlintest.NewClient(app), "GET", "/api/links", ""); resp.StatusCode != 401 {
		t.Errorf("without a session: got %d", resp.StatusCode)
	}
	// A page of another site sends a request in the name of its visitor.
	if resp, _ := send(t, browser, "POST", "/api/links", `{"url":"https://evil.example/"}`, "Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"); resp.StatusCode != 403 {
		t.Errorf("from another site: got %d", resp.StatusCode)
	}
	// The app on another origin may do so, and may read the answer.
	resp, _ := send(t, browser, "POST", "/api/links", `{"url":"https://example.com/"}`, "Sec-Fetch-Site", "cross-site", "Origin", "https://app.example.com")
	if resp.StatusCode != 201 || resp.Header.Get("Access-Control-Allow-Origin") != "https://app.example.com" {
		t.Errorf("from the app: got %d %v", resp.StatusCode, resp.Header)
	}
	preflight, _ := send(t, dunlintest.NewClient(app), "OPTIONS", "/api/links", "", "Origin", "https://app.example.com", "Access-Control-Request-Method", "POST")
	if preflight.StatusCode != 204 {
		t.Errorf("its preflight: got %d", preflight.StatusCode)
	}
	if resp, _ := send(t, browser, "POST", "/logout", ""); resp.StatusCode != 204 {
		t.Errorf("logout: got %d", resp.StatusCode)
	}
	if resp, _ := send(t, browser, "GET", "/api/links", ""); resp.StatusCode != 401 {
		t.Errorf("after logout: got %d", resp.StatusCode)
	}
}

func TestLimits(t *testing.T) {
	_, app, _ := newTest(t) // which was a login
	for range 1000 {
		resp, err := dunlintest.NewClient(app).PostForm(base+"/login", url.Values{"name": {"ada"}, "password": {"wrong"}})
		if err != nil {
			t.Fatal(err)
		}
		switch resp.StatusCode {
		case 401:
		case 429:
			return
		default:
			t.Fatalf("a wrong password: got %d", resp.StatusCode)
		}
	}
	t.Error("passwords can be tried out")
}

func TestOnce(t *testing.T) {
	_, _, browser := newTest(t)
	_, first := send(t, browser, "POST", "/api/links", `{"url":"https://example.com/"}`, "Idempotency-Key", "k")
	resp, again := send(t, browser, "POST", "/api/links", `{"url":"https://example.com/"}`, "Idempotency-Key", "k")
	if first != again || resp.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the repetition made another link: got %s, %s", first, again)
	}
	if resp, _ := send(t, browser, "POST", "/api/links", `{"url":"https://example.com/b"}`, "Idempotency-Key", "k"); resp.StatusCode != 422 {
		t.Errorf("another link with the key: got %d", resp.StatusCode)
	}
}

func TestImport(t *testing.T) {
	s, _, browser := newTest(t)
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	file, _ := w.CreateFormFile("file", "links.csv")
	_, _ = io.WriteString(file, "one,https://example.com/1\ntwo,https://example.com/2\none,https://example.com/3\nfour,ftp://x\n")
	_ = w.Close()
	resp, body := send(t, browser, "POST", "/api/links/import", form.String(), "Content-Type", w.FormDataContentType())
	if resp.StatusCode != 200 || body != `{"links":2,"refused":2}` {
		t.Errorf("got %d %s", resp.StatusCode, body)
	}
	if l, ok := s.links.get("two"); !ok || l.owner != "ada" {
		t.Errorf("the second link is %+v", l)
	}
}

// Clicks are counted in the background and sent to subscribers.
func TestClicks(t *testing.T) {
	s, _, browser := newTest(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go s.countClicks(ctx)
	send(t, browser, "POST", "/api/links", `{"url":"https://example.com/","code":"home"}`)
	req, _ := http.NewRequestWithContext(ctx, "GET", base+"/api/clicks", nil)
	resp, err := browser.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for watching := 0; watching == 0; runtime.Gosched() {
		s.watchers.mu.Lock()
		watching = len(s.watchers.all)
		s.watchers.mu.Unlock()
		if ctx.Err() != nil {
			t.Fatal("nobody watches")
		}
	}
	send(t, browser, "GET", "/home", "")
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			var l Link
			if err := json.Unmarshal([]byte(data), &l); err != nil || l.Code != "home" || l.Clicks != 1 {
				t.Errorf("the event is %s, %v", data, err)
			}
			break
		}
	}
	if lines.Err() != nil {
		t.Fatal(lines.Err())
	}
	if resp, body := send(t, browser, "GET", "/top", ""); body != "<ol><li>home: 1</li></ol>" || resp.Header.Get("Cache-Control") == "" {
		t.Errorf("the top is %s %v", body, resp.Header)
	}
}

func TestTrace(t *testing.T) {
	var logged bytes.Buffer
	s := newService(store.NewMemory(store.MemoryConfig{}), slog.New(traceHandler{slog.NewTextHandler(&logged, nil)}))
	app := s.app(dunlin.Config{Logger: slog.New(slog.DiscardHandler)})
	send(t, dunlintest.NewClient(app), "GET", "/none", "", "Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	if !strings.Contains(logged.String(), "trace_id=0af7651916cd43dd8448eb211c80319c") {
		t.Errorf("logged: %s", &logged)
	}
}

// The document also contains the refusals of the app's middleware.
func TestDocumentHasRefusals(t *testing.T) {
	_, _, browser := newTest(t)
	_, body := send(t, browser, "GET", "/docs/openapi.json", "")
	var document struct {
		Paths map[string]map[string]struct {
			Responses map[string]json.RawMessage `json:"responses"`
		} `json:"paths"`
	}
	if err := json.Unmarshal([]byte(body), &document); err != nil {
		t.Fatal(err)
	}
	got := document.Paths["/api/links"]["post"].Responses
	for _, status := range []string{"401", "403", "429"} {
		if got[status] == nil {
			t.Errorf("createLink has no %s", status)
		}
	}
}
