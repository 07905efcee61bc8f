// Package suite tests apps from outside, on all that serves them. It has what all adapters
// (internal/exchange) must do alike, as cases that take any adapter; tests of what an app does over
// connections, by both engines; and what such tests need, here and elsewhere.
//
//	suite.go     running the cases          adapters.go  the adapters there are
//	cases.go     requests and answers       answers.go   answers as text
//	serving.go   apps, connections, waits   https.go     certificates, clients
//	checks.go    what tests check           learned.go   routes that are known to block
//	h2.go        adapters that speak HTTP/2 rewrites.go  paths that stand for others
//
// The cases need no connection, and run in memory too. The tests beside them need one: they are about
// how bytes come and go (in pieces, half, slowly, never), about connections (their number,
// addresses, TLS, HTTP/2, hijacking, keep-alive, drain), about who holds memory over them, or about requests
// that are under way at once and seen from another connection.
//
// What shows on one engine alone is tested beside its adapter (internal/loophttp, internal/stdhttp),
// beginning and end of serving beside internal/lifecycle, and what needs no connection beside the
// public API, in the root.
package suite

import (
	"slices"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// An Adapter serves an app with the routes that register makes until the test ends. The function
// it returns sends requests over one connection, one after the other, and returns their
// answers as ReadAnswer renders them. After them the connection must be closed or, if closes
// is false, answer another request, for /probe, which register has.
type Adapter func(t *testing.T, config dunlin.Config, register func(*dunlin.App)) Talker

// A Talker is what an Adapter returns.
type Talker func(t *testing.T, closes bool, requests ...string) (answers []string)

// Run runs the suite on an adapter.
func Run(t *testing.T, serve Adapter) { run(t, serve, Cases) }

// RunH2 runs on an adapter what HTTP/2 has words for, but the named cases.
func RunH2(t *testing.T, serve Adapter, except ...string) {
	run(t, serve, slices.DeleteFunc(slices.Clone(Cases), func(c Case) bool {
		return OfHTTP1(c.Send) || slices.Contains(except, c.Name)
	}))
}

func run(t *testing.T, serve Adapter, cases []Case) {
	t.Run("each", func(t *testing.T) {
		talk := serve(t, dunlin.Config{MaxBody: MaxBody}, Register)
		for _, c := range cases {
			t.Run(c.Name, func(t *testing.T) {
				if got := talk(t, c.Closes, c.Send)[0]; got != c.Want {
					t.Errorf("answer:\n%s\nwant:\n%s", Clip(got), Clip(c.Want))
				}
			})
		}
	})
	t.Run("one after the other", func(t *testing.T) {
		talk := serve(t, dunlin.Config{MaxBody: MaxBody}, Register)
		var sends, wants []string
		for _, c := range cases {
			if !c.Closes {
				sends, wants = append(sends, c.Send), append(wants, c.Want)
			}
		}
		for i, got := range talk(t, false, sends...) {
			if got != wants[i] {
				t.Errorf("request %d on the connection, %.60q:\n%s\nwant:\n%s", i, sends[i], Clip(got), Clip(wants[i]))
			}
		}
	})
	t.Run("versions", func(t *testing.T) { runVersions(t, serve) })
	t.Run("rewritten", func(t *testing.T) { runRewrites(t, serve) })
}

// A list that was sent in several lines counts as one (RFC 9110 section 5.3).
func runVersions(t *testing.T, serve Adapter) {
	talk := serve(t, dunlin.Config{}, func(app *dunlin.App) {
		app.Get("/probe", Text("probe"))
		app.Version("v1").Get("/v", Text("one"))
		app.Version("v2").Get("/v", Text("two"))
	})
	for _, c := range []struct{ send, want string }{
		{Request("GET /v", "Accept: application/vnd.acme.v2+json"), "two"},
		{Request("GET /v", "Accept: text/html", "Accept: application/vnd.acme.v2+json"), "two"},
		{Request("GET /v", "Accept: application/vnd.acme.v2+json;q=0.5", "X-Accept: x", "accept: text/html", "ACCEPT: application/vnd.acme.v1+json"), "one"},
	} {
		got := talk(t, false, c.send)[0]
		if got = strings.Replace(got, "Vary: Accept\n", "", 1); got != Plain(c.want) {
			t.Errorf("%q: %s", c.send, got)
		}
	}
}
