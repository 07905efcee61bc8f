package middleware

import (
	"context"
	"net/http"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/rewrite"
)

// A stale answer that may be sent while another is made is sent to everybody, also to who has found it stale: the new one is made by a
// request of the cache's own, which is that of the client, without its conditions, and goes through the app as others do.

const (
	// mostRefreshes bounds how many answers are made so at once. Beyond it the client that finds one stale waits for the new one.
	mostRefreshes = 64
	// longestRefresh is after which the context of such a request ends.
	longestRefresh = time.Minute
)

// refreshKey is for the flight that a request of the cache's own leads, in its context.
type refreshKey struct{ cache *ResponseCache }

// refreshing returns the flight of a request of the cache's own, nil for other requests, which pay a look at a number.
func (k *ResponseCache) refreshing(r *dunlin.Request) *cacheFlight {
	if k.refreshes.Load() == 0 {
		return nil
	}
	f, _ := r.Context().Value(refreshKey{k}).(*cacheFlight)
	return f
}

// refresh has the new answer made while the stale one is sent, and reports false if the client is to do it.
func (k *ResponseCache) refresh(r *dunlin.Request, key *cacheKey, f *cacheFlight) bool {
	if k.config.App == nil {
		return false
	}
	if k.refreshes.Add(1) > mostRefreshes {
		k.refreshes.Add(-1)
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), refreshKey{k}, f), longestRefresh)
	req := r.Std().Clone(ctx)
	req.Body, req.ContentLength = http.NoBody, 0
	if sent := r.SentPath(); sent != r.Path() {
		rewrite.SetPath(req, sent) // and it is rewritten again
	}
	for _, name := range [...]string{"If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range"} {
		req.Header.Del(name)
	}
	own := key.clone()
	f.own = true
	go func() {
		defer k.refreshes.Add(-1)
		defer cancel()
		defer k.finish(&own, f) // if it has not come as far as the cache
		defer func() {
			if v := recover(); v != nil && v != http.ErrAbortHandler {
				panic(v)
			}
		}()
		k.config.App.ServeHTTP(nowhere{http.Header{}}, req)
	}()
	return true
}

// nowhere is where the answers to requests of the cache's own go.
type nowhere struct{ header http.Header }

func (w nowhere) Header() http.Header         { return w.header }
func (w nowhere) WriteHeader(int)             {}
func (w nowhere) Write(b []byte) (int, error) { return len(b), nil }
