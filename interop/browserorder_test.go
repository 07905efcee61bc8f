package interop_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

const (
	gallery = 200 // images on the page
	// together is the number of images that must be requested before the first response. Together with the other requests they
	// are fewer than the maximum number of streams of a connection.
	together = 110
	picture  = 200 << 10 // bytes: together the images exceed the buffers between server and browser
)

// A pageRequest is a request for a part of the page, as the server saw it.
type pageRequest struct {
	priority string
	peer     netip.AddrPort
	protocol string
}

// A show is a page with many images, and the requests of a browser for it.
type show struct {
	mu    sync.Mutex
	asked map[string]pageRequest
	ready chan struct{} // closed after enough requests
}

// urgent are the parts of the page that follow all images, and precede them in priority.
var urgent = []string{"/style.css", "/script.js"}

// part responds with a part of the page after enough requests.
func (s *show) part(r *dunlin.Request) dunlin.Response {
	s.mu.Lock()
	s.asked[r.Path()] = pageRequest{r.Header("Priority"), r.Peer(), r.TLS().NegotiatedProtocol}
	images := len(s.asked)
	for _, path := range urgent {
		if _, here := s.asked[path]; here {
			images--
		} else {
			images = 0
		}
	}
	if images == together {
		close(s.ready)
	}
	s.mu.Unlock()
	select {
	case <-s.ready:
	case <-r.Context().Done():
	}
	switch r.Path() {
	case "/style.css":
		return dunlin.Bytes("text/css", []byte("body { color: black }"))
	case "/script.js":
		return dunlin.Bytes("text/javascript", []byte("1"))
	}
	return dunlin.Bytes("image/png", make([]byte, picture)).Header("Cache-Control", "no-store")
}

// page has the images before everything else, and reports the time at which each part was complete.
func (s *show) page(*dunlin.Request) dunlin.Response {
	var b strings.Builder
	b.WriteString("<!doctype html><body><script>performance.setResourceTimingBufferSize(1000)</script>")
	for i := range gallery {
		fmt.Fprintf(&b, `<img src="/image/%d" width=20 height=20>`, i)
	}
	b.WriteString(`<link rel="stylesheet" href="/style.css"><script src="/script.js"></script><script>
addEventListener("load", () => {
	const ended = performance.getEntriesByType("resource").sort((a, b) => a.responseEnd - b.responseEnd);
	fetch("/report", {method: "POST", body: JSON.stringify(ended.map(e => new URL(e.name).pathname))});
});</script>`)
	return dunlin.HTML(b.String())
}

// A browser that requests a page with 200 images on one connection of HTTP/2 receives all of it. More urgent parts arrive
// before less urgent ones that were requested earlier (RFC 9218).
func TestBrowserGetsUrgentPartsFirst(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes a while to start")
	}
	if runtime.GOOS != "linux" {
		t.Skip("the loop engine runs on Linux only")
	}
	chromium := needTool(t, "chromium")
	s := &show{asked: map[string]pageRequest{}, ready: make(chan struct{})}
	report := make(chan []string, 1)
	url, _ := serveTLS(t, dunlin.EngineLoop, func(app *dunlin.App, _ string) {
		app.Get("/", s.page)
		app.Get("/image/{n}", s.part)
		for _, path := range urgent {
			app.Get(path, s.part)
		}
		app.Post("/report", func(r *dunlin.Request) dunlin.Response {
			body, err := r.Bytes()
			if err != nil {
				return dunlin.Error(err)
			}
			var ended []string
			if err := json.Unmarshal(body, &ended); err != nil {
				return dunlin.Error(err)
			}
			select {
			case report <- ended:
			default:
			}
			return dunlin.NoContent()
		})
	})
	browse(t, chromium, url+"/")
	var ended []string
	select {
	case ended = <-report:
	case <-time.After(browserPatience):
		s.mu.Lock()
		defer s.mu.Unlock()
		t.Fatalf("the page was not loaded: got %d requests", len(s.asked))
	}
	s.judge(t, ended)
}

func (s *show) judge(t *testing.T, ended []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	peers := map[netip.AddrPort]bool{}
	for path, r := range s.asked {
		peers[r.peer] = true
		if r.protocol != "h2" {
			t.Errorf("%s: got a request over %q", path, r.protocol)
		}
	}
	if len(s.asked) != gallery+len(urgent) || len(peers) != 1 {
		t.Errorf("got %d requests on %d connections, want %d on one", len(s.asked), len(peers), gallery+len(urgent))
	}
	images := slices.DeleteFunc(slices.Clone(ended), func(path string) bool { return !strings.HasPrefix(path, "/image/") })
	if len(images) != gallery {
		t.Errorf("got %d complete images, want %d", len(images), gallery)
	}
	for _, path := range urgent {
		at := slices.Index(ended, path)
		t.Logf("%s (%s) is number %d of %d; images have %q", path, s.asked[path].priority, at+1, len(ended), s.asked["/image/0"].priority)
		if !strings.HasPrefix(s.asked[path].priority, "u=") || s.asked[path].priority >= "u=3" {
			t.Errorf("%s: got Priority %q, want an urgent one", path, s.asked[path].priority)
		}
		// In the order of requests it would follow some 50 responses that were sent before the last one had begun.
		if at < 0 || at > together/4 {
			t.Errorf("%s: ended in position %d, after less urgent images", path, at+1)
		}
	}
}
