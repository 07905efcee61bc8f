package router_test

import (
	"testing"

	"github.com/dunlinhttp/dunlin/router"
)

func TestLookup(t *testing.T) {
	var r router.Router[string]
	for _, reg := range []router.Route[string]{
		{Methods: "GET", Pattern: "/"},
		{Methods: "GET,POST", Pattern: "/users"},
		{Methods: "GET", Pattern: "/users/{id}"},
		{Methods: "GET", Pattern: "/files/{rest...}"},
		{Methods: "*", Pattern: "/legacy", Prefix: true},
	} {
		reg.Value = reg.Pattern
		if err := r.Add(reg); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		method, path string
		outcome      router.Outcome
		want         string
	}{
		{"GET", "/", router.Found, "/"},
		{"GET", "/users", router.Found, "/users"},
		{"HEAD", "/users", router.Found, "/users"},
		{"PUT", "/users", router.MethodNotAllowed, "GET, HEAD, POST, OPTIONS"},
		{"GET", "/users/", router.NotFound, ""},
		{"GET", "/users/7", router.Found, "/users/{id}"},
		{"GET", "/users/..", router.NotFound, ""},
		{"GET", "/files/", router.Found, "/files/{rest...}"},
		{"GET", "/files/a/b", router.Found, "/files/{rest...}"},
		{"GET", "/files/a//b", router.NotFound, ""},
		{"GET", "/legacy", router.Found, "/legacy"},
		{"PURGE", "/legacy/x/y", router.Found, "/legacy"},
	}
	var m router.Match[string]
	for _, test := range tests {
		if got := r.Lookup(test.method, "", test.path, &m); got != test.outcome {
			t.Errorf("%s %s: %v, want %v", test.method, test.path, got, test.outcome)
			continue
		}
		switch test.outcome {
		case router.Found:
			if got := m.Route().Value; got != test.want {
				t.Errorf("%s %s: route %s, want %s", test.method, test.path, got, test.want)
			}
		case router.MethodNotAllowed:
			if got := m.Allow(); got != test.want {
				t.Errorf("%s %s: Allow %q, want %q", test.method, test.path, got, test.want)
			}
		}
	}
}
