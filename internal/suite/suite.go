// Package suite tests apps from outside, on all that serves them. It has what all adapters
// (internal/exchange) must do alike, and what such tests need, here and elsewhere.
//
//	suite.go       running the cases          adapters.go  the adapters there are
//	exceptions.go  what is not asked of some, and why
//	cases.go       requests and answers       answers.go   answers as text
//	gateway.go     HTTP/1.1 in front of adapters that speak something else, or nothing
//	serving.go     apps, connections, waits   https.go     certificates, clients
//	checks.go      what tests check           learned.go   routes that are known to block
//	rewrites.go    paths that stand for others
//
// The cases run on every adapter, and so do the tests (OnEngines): in clear text, by TLS, by HTTP/2 and in memory,
// but for what exceptions.go names. That is about bytes that come and go in time (in pieces, half, slowly, never), about
// connections (their number, addresses, TLS, hijacking, drain), or about who holds memory over them.
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

// Run runs the cases on an adapter, but for exceptions.
func Run(t *testing.T, a Adapter) {
	cases := slices.DeleteFunc(slices.Clone(Cases), func(c Case) bool {
		_, excepted := Excepted(a, c.Name)
		return excepted
	})
	a.On(t, func(t *testing.T, engine dunlin.Engine) {
		t.Run("each", func(t *testing.T) {
			addr, _ := Start(t, dunlin.Config{Engine: engine, MaxBody: MaxBody}, Register)
			for _, c := range cases {
				t.Run(c.Name, func(t *testing.T) {
					if got := Exchange(t, addr, c.Closes, c.Send)[0]; got != c.Want {
						t.Errorf("answer:\n%s\nwant:\n%s", Clip(got), Clip(c.Want))
					}
				})
			}
		})
		t.Run("one after the other", func(t *testing.T) {
			addr, _ := Start(t, dunlin.Config{Engine: engine, MaxBody: MaxBody}, Register)
			var sends, wants []string
			for _, c := range cases {
				if !c.Closes {
					sends, wants = append(sends, c.Send), append(wants, c.Want)
				}
			}
			for i, got := range Exchange(t, addr, false, sends...) {
				if got != wants[i] {
					t.Errorf("request %d on the connection, %.60q:\n%s\nwant:\n%s", i, sends[i], Clip(got), Clip(wants[i]))
				}
			}
		})
		t.Run("versions", func(t *testing.T) { runVersions(t, engine) })
		t.Run("rewritten", func(t *testing.T) { runRewrites(t, engine) })
	})
}

// A list that was sent in several lines counts as one (RFC 9110 section 5.3).
func runVersions(t *testing.T, engine dunlin.Engine) {
	addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
		app.Get("/probe", Text("probe"))
		app.Version("v1").Get("/v", Text("one"))
		app.Version("v2").Get("/v", Text("two"))
	})
	for _, c := range []struct{ send, want string }{
		{Request("GET /v", "Accept: application/vnd.acme.v2+json"), "two"},
		{Request("GET /v", "Accept: text/html", "Accept: application/vnd.acme.v2+json"), "two"},
		{Request("GET /v", "Accept: application/vnd.acme.v2+json;q=0.5", "X-Accept: x", "accept: text/html", "ACCEPT: application/vnd.acme.v1+json"), "one"},
	} {
		got := Exchange(t, addr, false, c.send)[0]
		if got = strings.Replace(got, "Vary: Accept\n", "", 1); got != Plain(c.want) {
			t.Errorf("%q: %s", c.send, got)
		}
	}
}
