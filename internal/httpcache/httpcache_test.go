package httpcache_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/httpcache"
)

const none = httpcache.None

func TestDirectives(t *testing.T) {
	for line, want := range map[string]string{
		"":                                   "",
		"max-age=60":                         "max-age=1m0s",
		"Max-Age=60 , PUBLIC":                "public max-age=1m0s",
		"public,max-age=60, s-maxage=5":      "public max-age=1m0s s-maxage=5s",
		`max-age="60"`:                       "max-age=1m0s",
		"max-age=60, max-age=30":             "max-age=30s",
		"max-age=30, max-age=60":             "max-age=30s",
		"max-age":                            "max-age=0s",
		"max-age=":                           "max-age=0s",
		"max-age=-1":                         "max-age=0s",
		"max-age=+1":                         "max-age=0s",
		"max-age=1.5":                        "max-age=0s",
		"max-age=60s":                        "max-age=0s",
		"max-age= 60":                        "max-age=0s",
		"max-age =60":                        "max-age=0s",
		"max-age\t=60, s-maxage=5":           "max-age=0s s-maxage=5s",
		`max-age ="60", public`:              "public max-age=0s",
		`private ="x"`:                       "private",
		"no-store =x":                        "no-store",
		"max-age=99999999999999999999":       "max-age=596523h14m8s",
		"max-age=9999999999999999999a":       "max-age=0s",
		"no-store":                           "no-store",
		`private="set-cookie, x", max-age=5`: "max-age=5s omit=[Set-Cookie X]",
		`no-cache="x", no-cache`:             "no-cache omit=[X]",
		`private=""`:                         "private",
		`private="x y"`:                      "private",
		`no-cache="a\", max-age=9", public`:  "no-cache public",
		`no-cache="a, max-age=9`:             "no-cache",
		"x-max-age=5, max-agex=7, =9, ,,":    "",
		"stale-while-revalidate=3,stale-if-error=4,must-revalidate": "must-revalidate swr=3s sie=4s",
		"proxy-revalidate, must-understand":                         "proxy-revalidate must-understand",
	} {
		if got := say(httpcache.ParseDirectives(line)); got != want {
			t.Errorf("%q: got %s, want %s", line, got, want)
		}
	}
	if got := say(httpcache.ParseDirectives("max-age=60", "no-store")); got != "no-store max-age=1m0s" {
		t.Errorf("two lines: got %s", got)
	}
	d := httpcache.ParseDirectives("max-stale, only-if-cached, min-fresh=4")
	if !d.AnyStale || !d.OnlyIfCached || d.MinFresh != 4*time.Second || d.MaxStale != none {
		t.Errorf("got %+v", d)
	}
}

func say(d httpcache.Directives) (said string) {
	var b strings.Builder
	flag := func(set bool, name string) {
		if set {
			b.WriteString(name + " ")
		}
	}
	flag(d.NoStore, "no-store")
	flag(d.NoCache, "no-cache")
	flag(d.Private, "private")
	flag(d.Public, "public")
	flag(d.MustRevalidate, "must-revalidate")
	flag(d.ProxyRevalidate, "proxy-revalidate")
	flag(d.MustUnderstand, "must-understand")
	if len(d.Omit) > 0 {
		defer func() { said = strings.TrimSpace(said + fmt.Sprint(" omit=", d.Omit)) }()
	}
	for _, v := range []struct {
		name string
		t    time.Duration
	}{{"max-age", d.MaxAge}, {"s-maxage", d.SMaxAge}, {"swr", d.StaleWhileRevalidate}, {"sie", d.StaleIfError}} {
		if v.t != none {
			fmt.Fprintf(&b, "%s=%v ", v.name, v.t)
		}
	}
	return strings.TrimSpace(b.String())
}

func TestMayStore(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	for _, test := range []struct {
		what  string
		resp  httpcache.Response
		req   httpcache.Request
		cc    string
		fresh time.Duration // 0: not stored
	}{
		{what: "no caching headers"},
		{what: "max-age", cc: "max-age=5", fresh: 5 * time.Second},
		{what: "max-age=0", cc: "max-age=0"},
		{what: "s-maxage overrides max-age", cc: "max-age=5, s-maxage=7", fresh: 7 * time.Second},
		{what: "s-maxage=0 overrides max-age", cc: "max-age=5, s-maxage=0"},
		{what: "public without freshness", cc: "public"},
		{what: "Expires", resp: httpcache.Response{HasExpires: true, Expires: at(time.Minute)}, fresh: time.Minute},
		{what: "Expires and Date", resp: httpcache.Response{HasExpires: true, Expires: at(time.Minute), Date: at(20 * time.Second)}, fresh: 40 * time.Second},
		{what: "Expires in the past", resp: httpcache.Response{HasExpires: true, Expires: at(-time.Minute)}},
		{what: "Expires: 0", resp: httpcache.Response{HasExpires: true, Expires: "0"}},
		{what: "max-age overrides Expires", resp: httpcache.Response{HasExpires: true, Expires: "0"}, cc: "max-age=5", fresh: 5 * time.Second},
		{what: "no-store", cc: "no-store, max-age=5"},
		{what: "must-understand with known status", cc: "must-understand, no-store, max-age=5", fresh: 5 * time.Second},
		{what: "must-understand with unknown status", resp: httpcache.Response{Status: 299}, cc: "must-understand, no-store, max-age=5"},
		{what: "private", cc: "private, max-age=5"},
		{what: "private with field names", cc: `private="x", max-age=5`, fresh: 5 * time.Second},
		{what: "no-cache with field names", cc: `no-cache="x", max-age=5`, fresh: 5 * time.Second},
		{what: "no-cache", cc: "no-cache, max-age=5"},
		{what: "request with no-store", req: httpcache.Request{NoStore: true}, cc: "max-age=5"},
		{what: "206 partial content", resp: httpcache.Response{Status: 206}, cc: "max-age=5"},
		{what: "500 server error", resp: httpcache.Response{Status: 500}, cc: "max-age=5"},
		{what: "400 client error", resp: httpcache.Response{Status: 400}, cc: "max-age=5"},
		{what: "unknown 2xx", resp: httpcache.Response{Status: 299}, cc: "max-age=5", fresh: 5 * time.Second},
		{what: "303", resp: httpcache.Response{Status: 303}, cc: "max-age=5", fresh: 5 * time.Second},
		{what: "heuristic freshness", resp: httpcache.Response{LastModified: at(-time.Hour), Heuristic: time.Hour}, fresh: 6 * time.Minute},
		{what: "heuristic freshness up to the maximum", resp: httpcache.Response{LastModified: at(-time.Hour), Heuristic: time.Minute}, fresh: time.Minute},
		{what: "heuristic freshness from Date", resp: httpcache.Response{LastModified: at(-time.Hour), Date: at(-30 * time.Minute), Heuristic: time.Hour}, fresh: 3 * time.Minute},
		{what: "heuristic off", resp: httpcache.Response{LastModified: at(-time.Hour)}},
		{what: "no heuristic with Last-Modified in the future", resp: httpcache.Response{LastModified: at(time.Hour), Heuristic: time.Hour}},
		{what: "no heuristic with explicit expiry", resp: httpcache.Response{LastModified: at(-time.Hour), Heuristic: time.Hour, HasExpires: true, Expires: "0"}},
		{what: "no heuristic for 303", resp: httpcache.Response{Status: 303, LastModified: at(-time.Hour), Heuristic: time.Hour}},
		{what: "heuristic freshness of a public 303", resp: httpcache.Response{Status: 303, LastModified: at(-time.Hour), Heuristic: time.Hour}, cc: "public", fresh: 6 * time.Minute},
		{what: "404", resp: httpcache.Response{Status: 404}, cc: "max-age=5", fresh: 5 * time.Second},
		{what: "304", resp: httpcache.Response{Status: 304}, cc: "max-age=5"},
		{what: "Set-Cookie", resp: httpcache.Response{SetsCookie: true}, cc: "public, max-age=5"},
		{what: "Vary: *", resp: httpcache.Response{VariesAlways: true}, cc: "max-age=5"},
		{what: "Authorization", req: httpcache.Request{Authorized: true}, cc: "max-age=5"},
		{what: "Authorization and public", req: httpcache.Request{Authorized: true}, cc: "public, max-age=5", fresh: 5 * time.Second},
		{what: "Authorization and s-maxage", req: httpcache.Request{Authorized: true}, cc: "s-maxage=5", fresh: 5 * time.Second},
		{what: "Authorization and must-revalidate", req: httpcache.Request{Authorized: true}, cc: "max-age=5, must-revalidate", fresh: 5 * time.Second},
		{what: "Cookie", req: httpcache.Request{Identified: true}, cc: "max-age=5"},
		{what: "Cookie and public", req: httpcache.Request{Identified: true}, cc: "public, max-age=5", fresh: 5 * time.Second},
	} {
		if test.resp.Status == 0 {
			test.resp.Status = 200
		}
		test.resp.Directives = httpcache.ParseDirectives(test.cc)
		fresh := time.Duration(0)
		if test.resp.MayStore(test.req) {
			fresh = test.resp.Freshness(now)
		}
		if fresh != test.fresh {
			t.Errorf("%s: got freshness %v, want %v", test.what, fresh, test.fresh)
		}
	}
}

func TestStale(t *testing.T) {
	for cc, want := range map[string]string{
		"max-age=5":                                                  "1s 2s",
		"max-age=5, no-cache":                                        "0s 0s",
		"max-age=5, stale-while-revalidate=7":                        "7s 2s",
		"max-age=5, stale-if-error=9":                                "1s 9s",
		"max-age=5, stale-if-error=9, must-revalidate":               "0s 0s",
		"max-age=5, stale-while-revalidate=9, proxy-revalidate":      "0s 0s",
		"s-maxage=5":                                                 "0s 0s",
		"s-maxage=5, stale-while-revalidate=8, stale-if-error=9":     "8s 9s",
		"max-age=5, stale-while-revalidate=0, stale-if-error=broken": "0s 0s",
	} {
		r := httpcache.Response{Directives: httpcache.ParseDirectives(cc)}
		swr, sie := r.Stale(time.Second, 2*time.Second)
		if got := fmt.Sprint(swr, " ", sie); got != want {
			t.Errorf("%s: got %s, want %s", cc, got, want)
		}
	}
}

func TestVary(t *testing.T) {
	for lines, want := range map[string]string{
		"": "[] false", "accept": "[Accept] false", "Accept-Encoding, accept , ,ACCEPT": "[Accept Accept-Encoding] false", "Accept, *": "[] true",
		"a;b":               "[A B] false",
		"a,b,c,d,e,f,g,h,i": "[A B C D E F G H I] true",
	} {
		names, always := httpcache.ParseVary(strings.Split(lines, ";")...)
		if got := fmt.Sprint(names, always); got != want {
			t.Errorf("Vary: %s: got %s, want %s", lines, got, want)
		}
	}
}

func FuzzDirectives(f *testing.F) {
	f.Add("public, max-age=60")
	f.Add(`no-cache="a\",b", s-maxage=1`)
	f.Fuzz(func(t *testing.T, line string) {
		d := httpcache.ParseDirectives(line)
		for _, v := range []time.Duration{d.MaxAge, d.SMaxAge, d.StaleIfError, d.StaleWhileRevalidate, d.MaxStale, d.MinFresh} {
			if v != none && (v < 0 || v%time.Second != 0) {
				t.Errorf("%q: got invalid duration %v", line, v)
			}
		}
		if d.NoStore && !strings.Contains(strings.ToLower(line), "no-store") || d.MaxAge > 0 && !strings.Contains(strings.ToLower(line), "max-age") {
			t.Errorf("%q: got %+v", line, d)
		}
	})
}

// Dates other than HTTP dates are invalid. The age of a response is the greater of its Age field and the time since its Date.
func TestAgeAndDates(t *testing.T) {
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	date := func(ago time.Duration) string { return now.Add(-ago).Format(http.TimeFormat) }
	for _, c := range []struct {
		age, date string
		want      time.Duration
	}{
		{"", "", 0}, {"7", "", 7 * time.Second}, {"7200, 0", "", 2 * time.Hour}, {"0, 7200", "", 0}, {"x", "", 0}, {"-1", "", 0},
		{"", date(time.Hour), time.Hour}, {"7", date(time.Hour), time.Hour}, {"7200", date(time.Hour), 2 * time.Hour}, {"7", date(-time.Hour), 7 * time.Second},
	} {
		r := httpcache.Response{Date: c.date}
		if got := r.Age(c.age, now); got != c.want {
			t.Errorf("Age %q, Date %q: got %v, want %v", c.age, c.date, got, c.want)
		}
	}
	for expires, fresh := range map[string]bool{
		"Sun, 22 Nov 2026 11:00:00 GMT": true, "Sunday, 22-Nov-26 11:00:00 GMT": true, "Sun Nov 22 11:00:00 2026": true, "Mon Nov 22 11:00:00 2026": true, "sun, 22 nov 2026 11:00:00 gmt": true, "Sun, 22 Nov 2026 11:00:00 UTC": false,
		"Sun, 22 Nov 2026  11:00:00 GMT": false, "Sun, 22 Nov 2026 11:0:00 GMT": false, "0": false, "Sun, 22 Nov 2026 11:00:00 GMT, Sun, 22 Nov 2026 11:00:00 GMT": false,
	} {
		r := httpcache.Response{Expires: expires, HasExpires: true, Directives: httpcache.ParseDirectives("")}
		if got := r.Freshness(now) > 0; got != fresh {
			t.Errorf("Expires %q: fresh is %v", expires, got)
		}
	}
}

func TestTargeted(t *testing.T) {
	for lines, want := range map[string]string{
		"":                                  "false",
		"max-age=60":                        "max-age=1m0s true",
		"max-age=60, s-maxage=5;x=1;y":      "max-age=1m0s s-maxage=5s true",
		"max-age=60|no-store":               "no-store max-age=1m0s true",
		"max-age=60, max-age=30":            "max-age=30s true",
		"no-store, private=?1, no-cache=?0": "no-store private true",
		`private="x"`:                       "omit=[X] true",
		`max-age="60"`:                      "true",
		"max-age=60.5":                      "true",
		"max-age=-1":                        "true",
		"max-age":                           "true",
		"max-age=99999999999":               "max-age=596523h14m8s true",
		`x="a\"b, max-age=9", max-age=5`:    "max-age=5s true",
		"max-age =60":                       "false",
		"max-age= 60":                       "false",
		"Max-Age=60":                        "false",
		"max-age=60,":                       "false",
		"max-age=60, &&&":                   "false",
		"max-age=60 x":                      "false",
		`x="a`:                              "false",
		"x=1234567890123456":                "false",
		"x=(1 2)":                           "false",
	} {
		d, ok := httpcache.ParseTargeted(strings.Split(lines, "|")...)
		got := "false"
		if ok {
			got = strings.TrimSpace(say(d) + " true")
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", lines, got, want)
		}
	}
}

func TestSameSelection(t *testing.T) {
	for _, c := range []struct {
		name, a, b string
		same       bool
	}{
		{"Foo", "a,b", "a,b", true}, {"Foo", "a, b", "a,b", false}, {"Accept-Language", "en, DE", "EN,de", true},
		{"Accept-Language", "en", "end", false}, {"Accept-Language", "de, en", "en, de", false}, {"Accept", `a;q="x y"`, `a;q="xy"`, false},
		{"Accept-Encoding", "gzip , br ", "gzip,br", true}, {"Accept-Encoding", "", "gzip", false},
	} {
		if got := httpcache.SameSelection(c.name, c.a, c.b); got != c.same {
			t.Errorf("%s: %q and %q: got %v", c.name, c.a, c.b, got)
		}
	}
}

func TestAcceptsStale(t *testing.T) {
	for cc, want := range map[string]string{"": "false false", "max-stale": "true true", "max-stale=5": "true false"} {
		d := httpcache.ParseDirectives(cc)
		if got := fmt.Sprint(d.AcceptsStale(4*time.Second), d.AcceptsStale(6*time.Second)); got != want {
			t.Errorf("%q: got %s, want %s", cc, got, want)
		}
	}
}

func FuzzTargeted(f *testing.F) {
	f.Add("max-age=60, x;y=1")
	f.Fuzz(func(t *testing.T, line string) {
		d, ok := httpcache.ParseTargeted(line)
		if ok && (strings.TrimSpace(line) == "" || d.MaxAge > 0 && !strings.Contains(line, "max-age=")) {
			t.Errorf("%q: got %+v", line, d)
		}
		if _, again := httpcache.ParseTargeted(line + ", max-age=7"); again != ok && strings.Trim(line, " \t") != "" {
			t.Errorf("%q: got %v, after appending a member %v", line, ok, again)
		}
	})
}
