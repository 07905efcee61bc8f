package looph2_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/stats"
)

var loadTime = flag.Duration("load", 0, "least `duration` of the load with observers")

// gaveUp is the status of a request that its client cancelled.
const gaveUp = -1

// Answers of actions that compete with their timeouts and their clients are observed once, with the status that the client gets,
// and pass each feature once.
func TestAnswersUnderLoadAreObservedOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, engine dunlin.Engine) {
		var mu sync.Mutex
		observed, cancelled := map[string][]int{}, map[string]bool{} // by token
		s := startH2(t, dunlin.Config{Engine: engine, RouteStats: stats.On}, func(app *dunlin.App) {
			app.Install(dunlin.Hooks{Observe: func(info *dunlin.AnswerInfo) {
				token := info.Path()[strings.LastIndexByte(info.Path(), '/')+1:]
				mu.Lock()
				defer mu.Unlock()
				observed[token] = append(observed[token], info.Status())
			}})
			app.Install(dunlin.Hooks{Observe: func(info *dunlin.AnswerInfo) { // takes about as long as a timeout
				if strings.HasPrefix(info.Path(), "/watched/") {
					time.Sleep(2 * time.Millisecond)
				}
			}})
			app.Install(dunlin.Hooks{Headers: func(info *dunlin.AnswerInfo, resp dunlin.Response) dunlin.Response {
				return resp.AddHeader("X-Status", fmt.Sprint(info.Status()))
			}})
			competing(app)
		})
		end, total, late := time.Now().Add(*loadTime), 0, 0
		for round := 0; round == 0 || time.Now().Before(end) && !t.Failed(); round++ {
			received := competingRequests(t, s, round)
			mu.Lock()
			for token, statuses := range observed {
				if _, sent := received[token]; !sent && !cancelled[token] || len(statuses) > 1 {
					t.Errorf("%s is observed with %v", token, statuses)
				}
			}
			mu.Unlock()
			for token, status := range received {
				total++
				switch status {
				case gaveUp:
					cancelled[token] = true
					continue
				case http.StatusServiceUnavailable:
					late++
				}
				soon(t, token+" is observed", func() bool {
					mu.Lock()
					defer mu.Unlock()
					return len(observed[token]) > 0
				})
				mu.Lock()
				if got := observed[token]; got[0] != status {
					t.Errorf("%s: the client got %d, the observer %v", token, status, got)
				}
				mu.Unlock()
			}
			soon(t, "no action runs", func() bool { return s.app.Stats().Actions.InFlight == 0 })
			mu.Lock()
			clear(observed)
			mu.Unlock()
		}
		if late == 0 {
			t.Error("no answer was late")
		}
		t.Logf("%d requests, of which %d late", total, late)
	})
}

// competing registers actions that end at about the time of their timeouts.
func competing(app *dunlin.App) {
	token := func(r *dunlin.Request) dunlin.Response { return dunlin.Text(r.Param("token")) }
	pause := func(r *dunlin.Request) dunlin.Response {
		time.Sleep(time.Duration(rand.IntN(4000)) * time.Microsecond)
		return token(r)
	}
	app.Post("/quick/{token}", token)
	app.Post("/compete/{token}", pause).Timeout(2 * time.Millisecond)
	app.Post("/watched/{token}", pause).Timeout(2 * time.Millisecond)
	app.Post("/late/{token}", func(r *dunlin.Request) dunlin.Response { <-r.Context().Done(); return token(r) }).Timeout(2 * time.Millisecond)
	app.Post("/std/{token}", dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(time.Duration(rand.IntN(4000)) * time.Microsecond)
		_, _ = io.WriteString(w, r.PathValue("token"))
	}))).Timeout(2 * time.Millisecond)
	app.Post("/body/{token}", func(r *dunlin.Request) dunlin.Response {
		if _, err := r.Bytes(); err != nil {
			return dunlin.Error(err)
		}
		return pause(r)
	}).Timeout(3 * time.Millisecond)
	app.Post("/stream/{token}", func(r *dunlin.Request) dunlin.Response {
		text := r.Param("token")
		return dunlin.Stream("text/plain", func(w io.Writer) error {
			for i := range len(text) {
				if _, err := io.WriteString(w, text[i:i+1]); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// competingRequests sends requests from many clients and returns the statuses that they got, by token.
func competingRequests(t *testing.T, s *h2Server, round int) map[string]int {
	const clients, requests = 16, 60
	var mu sync.Mutex
	received := map[string]int{}
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			for i := range requests {
				path := []string{"quick", "compete", "watched", "late", "std", "body", "stream"}[rand.IntN(7)]
				token := fmt.Sprintf("%d-%d-%d", round, c, i)
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				if rand.IntN(8) == 0 {
					time.AfterFunc(time.Duration(rand.IntN(4000))*time.Microsecond, cancel)
				}
				body := strings.NewReader(strings.Repeat("x", rand.IntN(40_000)))
				req, err := http.NewRequestWithContext(ctx, "POST", "http://"+s.addr+"/"+path+"/"+token, body)
				if err != nil {
					t.Error(err)
				}
				status, text, err := exchange(s.Client, req)
				cancelled := errors.Is(err, context.Canceled)
				cancel()
				switch {
				case cancelled:
					status = gaveUp
				case err != nil:
					t.Errorf("%s: %v", req.URL.Path, err)
				case status != http.StatusServiceUnavailable && (status != http.StatusOK || text != token):
					t.Errorf("%s: got %d %.100s", req.URL.Path, status, text)
				}
				mu.Lock()
				received[token] = status
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return received
}

// exchange sends a request and reads its answer, which a feature has marked with its status.
func exchange(c *http.Client, req *http.Request) (status int, body string, err error) {
	resp, err := c.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if got := resp.Header.Values("X-Status"); err == nil && (len(got) != 1 || got[0] != fmt.Sprint(resp.StatusCode)) {
		err = fmt.Errorf("the feature saw the statuses %q, the client got %d", got, resp.StatusCode)
	}
	return resp.StatusCode, string(text), err
}
