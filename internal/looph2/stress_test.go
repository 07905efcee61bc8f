package looph2_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// Concurrent streams of all kinds, some of which are reset by their clients, get their own answers, and release all memory.
func TestStreamsOfAllKinds(t *testing.T) {
	if testing.Short() {
		t.Skip("a longer test")
	}
	if runtime.GOOS != "linux" {
		t.Skip("the loop engine runs on Linux only")
	}
	large := strings.Repeat("0123456789abcdef", 10_000)
	s := startH2(t, dunlin.Config{Engine: dunlin.EngineLoop, Limits: dunlin.Limits{MaxConcurrent: 20, QueueTarget: -1}}, func(app *dunlin.App) {
		app.Get("/quick/{n}", func(r *dunlin.Request) dunlin.Response { return dunlin.Text(r.Param("n")) })
		app.Get("/large/{n}", func(r *dunlin.Request) dunlin.Response { return dunlin.Text(large + r.Param("n")) })
		app.Get("/blocks/{n}", func(r *dunlin.Request) dunlin.Response {
			<-time.After(time.Duration(rand.IntN(5)) * time.Millisecond)
			return dunlin.Text(r.Param("n"))
		})
		app.Get("/late/{n}", func(r *dunlin.Request) dunlin.Response {
			<-time.After(time.Duration(rand.IntN(4)) * time.Millisecond)
			return dunlin.Text(r.Param("n"))
		}).Timeout(2 * time.Millisecond)
		app.Get("/stream/{n}", func(r *dunlin.Request) dunlin.Response {
			n := r.Param("n")
			return dunlin.Stream("text/plain", func(w io.Writer) error {
				for range 100 {
					if _, err := io.WriteString(w, large[:1000]); err != nil {
						return err
					}
				}
				_, err := io.WriteString(w, n)
				return err
			})
		})
		app.Mount("/std/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(w, r.Body)
			_, _ = io.WriteString(w, r.URL.Path[len("/std/"):])
		}))
		app.Post("/echo/{n}", func(r *dunlin.Request) dunlin.Response {
			body, err := r.Bytes()
			if err != nil {
				return dunlin.Error(err)
			}
			return dunlin.Text(fmt.Sprint(len(body), " ", r.Param("n")))
		})
	})
	paths := []string{"quick", "large", "blocks", "late", "stream", "std", "echo"}
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			for j := range 40 {
				path, n := paths[rand.IntN(len(paths))], fmt.Sprintf("%d-%d", i, j)
				ctx, cancel := context.WithCancel(t.Context())
				leaves := rand.IntN(8) == 0
				if leaves {
					time.AfterFunc(time.Duration(rand.IntN(3000))*time.Microsecond, cancel)
				}
				method, body := "GET", io.Reader(nil)
				if path == "std" || path == "echo" {
					method, body = "POST", strings.NewReader(large[:rand.IntN(len(large))])
				}
				status, got := s.ask(http.NewRequestWithContext(ctx, method, "http://"+s.addr+"/"+path+"/"+n, body))
				cancel()
				if late := path == "late" && status == 503; !leaves && !late && (status != 200 || !strings.HasSuffix(got, n)) {
					t.Errorf("%s/%s: got %d %.200q", path, n, status, got)
				}
			}
		})
	}
	wg.Wait()
}
