package h2_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/dunlinhttp/dunlin"
)

// A stage is the app under test, with the state of its actions that tests observe.
type stage struct {
	begun chan string // queries of requests of /hold whose actions run
	ended chan string // ... with whether their contexts have ended

	working, most atomic.Int64 // running actions of /stubborn, and their maximum

	mu   sync.Mutex
	gate chan struct{} // closed: actions may return
}

func newStage() *stage {
	return &stage{begun: make(chan string, 10000), ended: make(chan string, 10000), gate: make(chan struct{})}
}

// release lets all actions return.
func (s *stage) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.gate)
}

// shut makes new calls wait.
func (s *stage) shut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gate = make(chan struct{})
	s.most.Store(0)
}

func (s *stage) released() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gate
}

func (s *stage) register(app *dunlin.App) {
	app.Get("/hello", func(*dunlin.Request) dunlin.Response { return dunlin.Text("hello") })
	app.Get("/size/{n:int}", func(r *dunlin.Request) dunlin.Response {
		n, _ := dunlin.Param[int](r, "n")
		return dunlin.Bytes("text/plain", []byte(pattern(n)))
	})
	app.Get("/stream/{n:int}", func(r *dunlin.Request) dunlin.Response {
		n, _ := dunlin.Param[int](r, "n")
		return dunlin.Stream("text/plain", func(w io.Writer) error {
			for rest := pattern(n); rest != ""; rest = rest[min(len(rest), 1000):] {
				if _, err := io.WriteString(w, rest[:min(len(rest), 1000)]); err != nil {
					return err
				}
			}
			return nil
		})
	})
	app.Post("/echo", func(r *dunlin.Request) dunlin.Response {
		body, err := r.Bytes()
		if err != nil {
			return dunlin.Error(err)
		}
		return dunlin.Bytes("text/plain", slices.Clone(body))
	})
	app.Post("/length", func(r *dunlin.Request) dunlin.Response {
		n, err := io.Copy(io.Discard, r.Body())
		if err != nil {
			return dunlin.Error(err)
		}
		return dunlin.Text(strconv.FormatInt(n, 10))
	})
	app.Post("/unread", func(*dunlin.Request) dunlin.Response { return dunlin.Text("unread") })
	app.Handle("*", "/hold", func(r *dunlin.Request) dunlin.Response {
		s.begun <- r.RawQuery()
		select {
		case <-s.released():
			s.ended <- "released"
		case <-r.Context().Done():
			s.ended <- "cancelled"
		}
		return dunlin.Text("held")
	})
	// It has no eye for the end of its context.
	app.Handle("*", "/stubborn", func(*dunlin.Request) dunlin.Response {
		for n := s.working.Add(1); ; {
			if most := s.most.Load(); n <= most || s.most.CompareAndSwap(most, n) {
				break
			}
		}
		<-s.released()
		s.working.Add(-1)
		return dunlin.Text("done")
	})
	bytes := []byte(pattern(1 << 20))
	app.Get("/vast", func(*dunlin.Request) dunlin.Response { return dunlin.Bytes("text/plain", bytes) })
	app.Handle("*", "/fields", func(r *dunlin.Request) dunlin.Response {
		lines := []string{r.Method() + " " + r.Host() + " " + r.Path() + " " + r.RawQuery()}
		for name, value := range r.Headers() {
			if name = strings.ToLower(name); name == "host" {
				continue // the authority
			}
			lines = append(lines, name+": "+value)
		}
		slices.Sort(lines[1:])
		return dunlin.Text(strings.Join(lines, "\n"))
	})
	app.Mount("/std", http.StripPrefix("/std", handlers()))
}

// handlers are standard ones.
func handlers() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/hello", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })
	mux.HandleFunc("POST /echo", func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex() // HTTP/2 is anyway
		b := make([]byte, 10_000)
		for {
			n, err := r.Body.Read(b)
			if _, werr := w.Write(b[:n]); werr != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
			if err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/fields", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s %s %s %s cookie=%s te=%s", r.Proto, r.Method, r.Host, r.URL.Path, r.URL.RawQuery, r.Header["Cookie"], r.Header["Te"])
	})
	mux.HandleFunc("/trailers", func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		w.Header().Set("Trailer", "X-Said")
		w.Header().Set("X-Announced", fmt.Sprint(r.Header["Trailer"]))
		fmt.Fprintf(w, "%d %v %v", n, err, r.Trailer)
		w.Header().Set("X-Said", "in time")
		w.Header().Set(http.TrailerPrefix+"X-Unsaid", "as well")
	})
	mux.HandleFunc("/hints", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</a.css>")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("Link", "</b.css>")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		_, _ = io.WriteString(w, "hinted")
	})
	mux.HandleFunc("POST /refuse", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	mux.HandleFunc("/abort", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	return mux
}

// pattern returns n bytes, at most large, without repeated parts.
func pattern(n int) string { return patternOnce()[:n] }

var patternOnce = sync.OnceValue(func() string {
	b := make([]byte, 0, large+8)
	for i := 0; len(b) < large; i++ {
		b = fmt.Appendf(b, "%07d ", i)
	}
	return string(b)
})
