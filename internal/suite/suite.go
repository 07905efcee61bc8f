// Package suite tests apps from the outside on every adapter. It contains the behavior that all adapters
// (internal/exchange) share, and helpers for such tests here and elsewhere.
//
//	suite.go       running the cases          adapters.go  the list of adapters
//	exceptions.go  tests that skip an adapter, with reasons
//	cases.go       requests and answers       answers.go   answers as text
//	gateway.go     HTTP/1.1 for adapters with another protocol, or none
//	serving.go     apps, connections, waits   https.go     certificates, clients
//	checks.go      checks                     learned.go   routes that are known to block
//	rewrites.go    rewritten paths
//
// A case is a request and its expected response (cases.go). Run checks all cases on an adapter. Behavior that depends on timing,
// connections or memory has a Go test of its own, which calls OnEngines. Cases and tests run on every adapter: in clear text, over
// TLS, over HTTP/2 and in memory, with the exceptions in exceptions.go.
//
// Tests of one engine are in the package of its adapter (internal/loophttp, internal/stdhttp), tests of the start and end of
// serving in internal/lifecycle, and tests without connections in the root package.
package suite

import (
	"slices"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// Run runs the cases on an adapter, except its exceptions.
func Run(t *testing.T, a Adapter) {
	cases := slices.DeleteFunc(slices.Clone(Cases), func(c Case) bool {
		_, excepted := Excepted(a, c.Name)
		return excepted
	})
	a.On(t, func(t *testing.T, engine dunlin.Engine) {
		t.Run("each", func(t *testing.T) {
			addr, _ := Start(t, dunlin.Config{Engine: engine, Limits: dunlin.Limits{MaxBody: MaxBody}}, Register)
			for _, c := range cases {
				t.Run(c.Name, func(t *testing.T) {
					if got := Exchange(t, addr, c.Closes, c.Send)[0]; got != c.Want {
						t.Errorf("answer:\n%s\nwant:\n%s", Clip(got), Clip(c.Want))
					}
				})
			}
		})
		t.Run("one after the other", func(t *testing.T) {
			addr, _ := Start(t, dunlin.Config{Engine: engine, Limits: dunlin.Limits{MaxBody: MaxBody}}, Register)
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

// runVersions checks that the version is found in an Accept header of several lines, as in one line (RFC 9110 section 5.3).
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
