package middleware

import (
	"context"
	"net/http"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/rewrite"
)

// A response that may be sent while it is stale is sent to all clients, including the client that
// found it stale. The cache makes a request of its own for the new response: a copy of the client's
// request without its conditions. This refresh request passes through the whole app.

const (
	// maxRefreshes is the maximum number of refresh requests in progress. Beyond it, the client that finds a response stale waits
	// for the new response.
	maxRefreshes = 64
	// longestRefresh is the time limit of a refresh request.
	longestRefresh = time.Minute
)

// refreshKey is the context key of the flight that a refresh request leads.
type refreshKey struct{ cache *ResponseCache }

// refreshing returns the flight that a refresh request leads, or nil for other requests. While no
// refresh request is in progress it costs one atomic load.
func (k *ResponseCache) refreshing(r *dunlin.Request) *cacheFlight {
	if k.refreshes.Load() == 0 {
		return nil
	}
	f, _ := r.Context().Value(refreshKey{k}).(*cacheFlight)
	return f
}

// refresh starts a refresh request, so that the stale response can be sent to the client. It reports
// false if the client's request must run the action.
func (k *ResponseCache) refresh(r *dunlin.Request, key *cacheKey, f *cacheFlight) bool {
	if k.config.App == nil {
		return false
	}
	if k.refreshes.Add(1) > maxRefreshes {
		k.refreshes.Add(-1)
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), refreshKey{k}, f), longestRefresh)
	req := r.Std().Clone(ctx)
	req.Body, req.ContentLength = http.NoBody, 0
	if sent := r.SentPath(); sent != r.Path() {
		rewrite.SetPath(req, sent) // the original path, which the app rewrites again
	}
	for _, name := range [...]string{"If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range"} {
		req.Header.Del(name)
	}
	own := key.clone()
	f.own = true
	go func() {
		defer k.refreshes.Add(-1)
		defer cancel()
		defer k.finish(&own, f) // in case the request does not reach the cache
		defer func() {
			if v := recover(); v != nil && v != http.ErrAbortHandler {
				panic(v)
			}
		}()
		k.config.App.ServeHTTP(nowhere{http.Header{}}, req)
	}()
	return true
}

// nowhere discards the responses to refresh requests.
type nowhere struct{ header http.Header }

func (w nowhere) Header() http.Header         { return w.header }
func (w nowhere) WriteHeader(int)             {}
func (w nowhere) Write(b []byte) (int, error) { return len(b), nil }
