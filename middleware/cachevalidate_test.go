package middleware_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
)

// validating returns an action that answers 304 to requests with the given tag, and the number of the run to others.
func validating(tag, cacheControl string, more ...string) func(*dunlin.Request, int64) dunlin.Response {
	return func(r *dunlin.Request, n int64) dunlin.Response {
		resp := numbered(append(more, "Etag", tag, "Cache-Control", cacheControl, "X-Run", fmt.Sprint(n))...)(r, n)
		if r.Header("If-None-Match") == tag {
			return resp.Status(http.StatusNotModified)
		}
		return resp
	}
}

// The cache revalidates a stale entry with its own conditions, not the client's. A 304 renews the entry.
func TestCacheRevalidates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newCachedApp(middleware.CacheConfig{}, validating(`"v"`, "max-age=10"))
		first := k.get("/items/1")
		is(t, "the first", first, "run 1")
		<-time.After(11 * time.Second)
		second := k.get("/items/1")
		is(t, "the second", second, "run 1")
		h := second.Header()
		if h.Get("X-Run") != "2" || h.Get("Age") != "0" || h.Get("Cache-Status") != "Dunlin; fwd=stale; fwd-status=304" || h.Get("Content-Type") == "" || second.Code != 200 {
			t.Errorf("second request: got %d %v", second.Code, h)
		}
		is(t, "the third", k.get("/items/1"), "run 1")
		<-time.After(11 * time.Second)
		if w := k.get("/items/1", "If-None-Match", `"v"`); w.Code != 304 || w.Header().Get("X-Run") != "3" {
			t.Errorf("If-None-Match with the stored tag: got %d %v", w.Code, w.Header())
		}
		<-time.After(11 * time.Second)
		is(t, "If-None-Match with another tag", k.get("/items/1", "If-None-Match", `"w"`, "If-Match", `"w"`), "run 1")
		if s := k.cache.Stats(); s.Renewed != 3 || s.Misses != 4 || s.Hits != 1 || s.Entries != 1 {
			t.Errorf("got %+v", s)
		}
	})
}

// A 304 for a different entity does not refresh the entry: the cache sends the request again without conditions.
func TestCacheRepeatsRequestAfterOther304(t *testing.T) {
	for what, answer := range map[string]func(dunlin.Response) dunlin.Response{
		"another tag":  func(r dunlin.Response) dunlin.Response { return r.Header("Etag", `"w"`) },
		"a strong tag": func(r dunlin.Response) dunlin.Response { return r.Header("Etag", `"v"`) },
		"another change": func(r dunlin.Response) dunlin.Response {
			return r.Header("Last-Modified", "Thu, 01 Jan 2026 00:00:01 GMT")
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			k := newCachedApp(middleware.CacheConfig{}, func(r *dunlin.Request, n int64) dunlin.Response {
				if r.Header("If-None-Match") != "" {
					return answer(dunlin.Empty().Status(http.StatusNotModified))
				}
				return numbered("Cache-Control", "max-age=10", "Etag", `W/"v"`, "Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")(r, n)
			})
			k.get("/items/1")
			<-time.After(11 * time.Second)
			is(t, what, k.get("/items/1"), "run 3")
			is(t, what+", then", k.get("/items/1"), "run 3")
		})
	}
}

// A changed response replaces the stored one. A client that already has the new one gets 304.
func TestCacheRevalidationReplaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newCachedApp(middleware.CacheConfig{}, func(r *dunlin.Request, n int64) dunlin.Response {
			return numbered("Cache-Control", "max-age=10", "Etag", fmt.Sprintf(`"%d"`, n))(r, n)
		})
		k.get("/items/1")
		<-time.After(11 * time.Second)
		if w := k.get("/items/1", "If-None-Match", `"2"`); w.Code != 304 || w.Body.Len() > 0 {
			t.Errorf("If-None-Match with the new tag: got %d %v", w.Code, w.Header())
		}
		is(t, "others", k.get("/items/1"), "run 2")
	})
}

// A cookie set by a 304 reaches only one client.
func TestCacheRevalidationWithCookie(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newCachedApp(middleware.CacheConfig{}, func(r *dunlin.Request, n int64) dunlin.Response {
			resp := validating(`"v"`, "max-age=10")(r, n)
			if n == 2 {
				resp = resp.AddHeader("Set-Cookie", "a=b")
			}
			return resp
		})
		k.get("/items/1")
		<-time.After(11 * time.Second)
		w := k.get("/items/1")
		is(t, "the client of the revalidation", w, "run 1")
		if w.Header().Get("Set-Cookie") != "a=b" {
			t.Errorf("got no cookie: %v", w.Header())
		}
		if w = k.get("/items/1"); w.Header().Get("Set-Cookie") != "" || w.Header().Get("X-Run") != "3" {
			t.Errorf("next client: got header %v", w.Header())
		}
	})
}

// The stored response is dropped when the next one is private, no-cache or no-store. It does not return even when the action
// fails later.
func TestCacheDropsNewlyPrivateResponses(t *testing.T) {
	for _, says := range []string{"private, max-age=10", "no-store", "no-cache", "max-age=10", "failure", "cookie"} {
		for _, status := range []int{200, 304, 404} {
			synctest.Test(t, func(t *testing.T) {
				var down bool
				k := newCachedApp(middleware.CacheConfig{StaleIfError: time.Hour}, func(r *dunlin.Request, n int64) dunlin.Response {
					switch {
					case down || n > 1 && says == "failure":
						return dunlin.Empty().Status(503)
					case n == 1:
						return numbered("Cache-Control", "max-age=10", "Etag", `"v"`)(r, n)
					case says == "cookie":
						return numbered("Cache-Control", "max-age=10", "Etag", `"v"`, "Set-Cookie", "a=b")(r, n).Status(status)
					}
					return numbered("Cache-Control", says, "Etag", `"v"`)(r, n).Status(status)
				})
				k.get("/items/1")
				<-time.After(11 * time.Second)
				k.get("/items/1")
				kept := says == "max-age=10" || says == "failure" || says == "cookie"
				if n := k.cache.Stats().Entries; (n == 1) != kept {
					t.Errorf("after a %d with Cache-Control %s: got %d entries", status, says, n)
				}
				down = true
				<-time.After(11 * time.Second)
				if w := k.get("/items/1"); (w.Code == 503) == kept {
					t.Errorf("failure after a %d with Cache-Control %s: got %d %s", status, says, w.Code, w.Body)
				}
			})
		}
	}
}

// With Revalidate, the cache stores responses that are never fresh and revalidates them for each request. Without it, they are
// not stored.
func TestCacheRevalidateAlways(t *testing.T) {
	for _, cc := range []string{"no-cache", "max-age=0", "no-cache, max-age=10"} {
		k := newCachedApp(middleware.CacheConfig{Revalidate: true}, validating(`"v"`, cc))
		for n := range 3 {
			w := k.get("/items/1")
			is(t, cc, w, "run 1")
			if got := w.Header().Get("X-Run"); got != fmt.Sprint(n+1) {
				t.Errorf("%s: got the response of run %s, want run %d", cc, got, n+1)
			}
		}
		k = newCachedApp(middleware.CacheConfig{}, validating(`"v"`, cc))
		k.get("/items/1")
		is(t, cc+" by default", k.get("/items/1"), "run 2")
		if s := k.cache.Stats(); s.Entries != 0 {
			t.Errorf("%s: got %+v", cc, s)
		}
	}
	k := newCachedApp(middleware.CacheConfig{Revalidate: true, StaleWhileRevalidate: time.Hour, StaleIfError: time.Hour}, func(r *dunlin.Request, n int64) dunlin.Response {
		if n > 1 {
			return dunlin.Empty().Status(503)
		}
		return validating(`"v"`, "no-cache")(r, n)
	})
	k.get("/items/1")
	if w := k.get("/items/1"); w.Code != 503 {
		t.Errorf("no-cache, then a failure: got %d %s", w.Code, w.Body)
	}
}

// Fields named by no-cache or private are not stored. The rest of such a response is shared.
func TestCacheOmitsPrivateFields(t *testing.T) {
	k := newCachedApp(middleware.CacheConfig{}, numbered("Cache-Control", `max-age=10, private="set-cookie, x-a"`, "Set-Cookie", "a=b", "X-A", "1", "X-B", "2"))
	if h := k.get("/items/1").Header(); h.Get("Set-Cookie") == "" || h.Get("X-A") == "" {
		t.Errorf("first client: got header %v", h)
	}
	w := k.get("/items/1")
	is(t, "the second", w, "run 1")
	if h := w.Header(); h.Get("Set-Cookie") != "" || h.Get("X-A") != "" || h.Get("X-B") != "2" {
		t.Errorf("second client: got header %v", h)
	}
}

func TestCacheTargetedFieldsAndHeuristic(t *testing.T) {
	front := middleware.CacheConfig{Targets: []string{"CDN-Cache-Control"}, Heuristic: time.Hour}
	for what, test := range map[string]struct {
		c      middleware.CacheConfig
		fields []string
		want   string
	}{
		"targeted, cacheable": {front, []string{"CDN-Cache-Control", "max-age=10", "Cache-Control", "no-store"}, "run 1"},
		"targeted, no-store":  {front, []string{"CDN-Cache-Control", "no-store", "Cache-Control", "max-age=10"}, "run 2"},
		"malformed":           {front, []string{"CDN-Cache-Control", "no-store,", "Cache-Control", "max-age=10"}, "run 1"},
		"by default":          {middleware.CacheConfig{}, []string{"CDN-Cache-Control", "no-store", "Cache-Control", "max-age=10"}, "run 1"},
		"heuristic lifetime":  {front, []string{"Last-Modified", "Thu, 01 Jan 2015 00:00:00 GMT"}, "run 1"},
		"no heuristic":        {middleware.CacheConfig{}, []string{"Last-Modified", "Thu, 01 Jan 2015 00:00:00 GMT"}, "run 2"},
	} {
		k := newCachedApp(test.c, numbered(test.fields...))
		k.get("/items/1")
		is(t, what, k.get("/items/1"), test.want)
	}
}

// A stored response keeps its Date, the base of its age.
func TestCacheDate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newCachedApp(middleware.CacheConfig{}, numbered("Cache-Control", "max-age=10"))
		k.get("/items/1")
		want := time.Now().UTC().Format(http.TimeFormat)
		<-time.After(5 * time.Second)
		if h := k.get("/items/1").Header(); h.Get("Date") != want || h.Get("Age") != "5" {
			t.Errorf("got Date %s and Age %s, want %s and 5", h.Get("Date"), h.Get("Age"), want)
		}
	})
}

func TestCacheRanges(t *testing.T) {
	fields := []string{"Cache-Control", "max-age=60", "Etag", `"v"`, "Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT"}
	k := newCachedApp(middleware.CacheConfig{}, func(r *dunlin.Request, n int64) dunlin.Response {
		if n > 1 {
			return dunlin.Text("the action")
		}
		return numbered(fields...)(r, n) // "run 1"
	})
	k.get("/items/1")
	for _, c := range []struct {
		ask                []string // Range and other fields
		status             int
		body, contentRange string
	}{
		{[]string{"bytes=0-1"}, 206, "ru", "bytes 0-1/5"},
		{[]string{"Bytes = 1-"}, 206, "un 1", "bytes 1-4/5"},
		{[]string{"bytes=-2"}, 206, " 1", "bytes 3-4/5"},
		{[]string{"bytes=-99"}, 206, "run 1", "bytes 0-4/5"},
		{[]string{"bytes=4-99999999999999999999"}, 206, "1", "bytes 4-4/5"},
		{[]string{"bytes=5-"}, 416, "", "bytes */5"},
		{[]string{"bytes=-0"}, 416, "", "bytes */5"},
		{[]string{"bytes=3-1"}, 200, "run 1", ""},
		{[]string{"bytes=-"}, 200, "run 1", ""},
		{[]string{"bytes=a-b"}, 200, "run 1", ""},
		{[]string{"bytes=+1-2"}, 200, "run 1", ""},
		{[]string{"lines=0-1"}, 200, "run 1", ""},
		{[]string{"bytes"}, 200, "run 1", ""},
		{[]string{"bytes=0-1,3-4"}, 200, "the action", ""},
		{[]string{"bytes=0-1", "If-Range", `"v"`}, 206, "ru", "bytes 0-1/5"},
		{[]string{"bytes=0-1", "If-Range", `W/"v"`}, 200, "run 1", ""},
		{[]string{"bytes=0-1", "If-Range", `"w"`}, 200, "run 1", ""},
		{[]string{"bytes=0-1", "If-Range", "Thu, 01 Jan 2026 00:00:00 GMT"}, 206, "ru", "bytes 0-1/5"},
		{[]string{"bytes=0-1", "If-Range", "Thu, 01 Jan 2026 00:00:01 GMT"}, 200, "run 1", ""},
		{[]string{"bytes=0-1", "If-None-Match", `"v"`}, 304, "", ""},
		{[]string{"bytes=0-1", "Authorization", "me"}, 200, "the action", ""},
	} {
		w := k.get("/items/1", append([]string{"Range"}, c.ask...)...)
		if w.Code != c.status || w.Header().Get("Content-Range") != c.contentRange || c.status != 416 && w.Body.String() != c.body {
			t.Errorf("%q: got %d %q, Content-Range %q; want %d %q %q", c.ask, w.Code, w.Body, w.Header().Get("Content-Range"), c.status, c.body, c.contentRange)
		}
	}
	if w := k.do("HEAD", "/items/1", "Range", "bytes=0-1"); w.Code != 200 || w.Header().Get("Content-Range") != "" {
		t.Errorf("HEAD: got %d %v", w.Code, w.Header())
	}
	fields = append(fields, "Accept-Ranges", "none")
	k.cache.Clear()
	k.runs.Store(0)
	k.get("/items/1")
	if w := k.get("/items/1", "Range", "bytes=0-1"); w.Code != 200 {
		t.Errorf("Accept-Ranges: none: got %d", w.Code)
	}
}

// A body compressed between the action and the cache has no ranges: no tag proves that two parts belong to the same encoding.
func TestCacheRangesOfEncodedBodies(t *testing.T) {
	long := strings.Repeat("a text ", 1000)
	for name, c := range map[string]struct {
		fields []string
		inside dunlin.Middleware
		status int
	}{
		"compressed":                  {nil, middleware.Compress(middleware.CompressConfig{}), 200},
		"compressed, with a tag":      {[]string{"Etag", `"v"`}, middleware.Compress(middleware.CompressConfig{}), 200},
		"encoded once":                {[]string{"Etag", `"v"`, "Content-Encoding", "gzip"}, nil, 206},
		"encoded once, without a tag": {[]string{"Content-Encoding", "gzip"}, nil, 200},
		"plain variant":               {nil, nil, 206},
	} {
		app := dunlin.New(quiet)
		around := []dunlin.Middleware{middleware.NewCache(middleware.CacheConfig{}).Middleware()}
		if c.inside != nil {
			around = append(around, c.inside)
		}
		app.Get("/", func(*dunlin.Request) dunlin.Response {
			resp := dunlin.Text(long).CachePublic(time.Minute)
			for i := 0; i < len(c.fields); i += 2 {
				resp = resp.Header(c.fields[i], c.fields[i+1])
			}
			return resp
		}, around...)
		whole := requestOf(app, "GET", "/", nil, "Accept-Encoding", "gzip")
		w := requestOf(app, "GET", "/", nil, "Accept-Encoding", "gzip", "Range", "bytes=0-3")
		if w.Code != c.status || c.status == 200 && w.Body.String() != whole.Body.String() || w.Header().Get("Age") == "" {
			t.Errorf("%s: got %d %v", name, w.Code, w.Header())
		}
	}
}
