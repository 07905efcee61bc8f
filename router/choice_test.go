package router_test

import (
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/router"
)

func TestHosts(t *testing.T) {
	r := build(t,
		route{Methods: "GET", Pattern: "/", Value: "any"},
		route{Methods: "GET", Pattern: "/x", Value: "any"},
		route{Methods: "GET", Pattern: "/", Host: "www.Example.com", Value: "www"},
		route{Methods: "GET", Pattern: "/{p}", Host: "{tenant}.example.com", Value: "tenant"},
		route{Methods: "GET", Pattern: "/", Host: "{n:int}.example.com", Value: "number"},
		route{Methods: "POST", Pattern: "/", Host: "{a}.{b}.example.com", Value: "two"},
		route{Methods: "GET", Pattern: "/", Host: "[::1]", Value: "v6"},
	)
	var m router.Match[string]
	for _, test := range []struct{ host, path, want, values string }{
		{"", "/", "any", ""}, {"other", "/", "any", ""},
		{"www.example.com", "/", "www", ""}, {"WWW.example.COM:8080", "/", "www", ""}, {"www.example.com.", "/", "www", ""},
		{"www.example.com", "/x", "tenant", "tenant=www p=x"},
		{"Acme.example.com:1", "/y", "tenant", "tenant=Acme p=y"},
		{"7.example.com", "/", "number", "n=7"}, {"7.example.com", "/x", "tenant", "tenant=7 p=x"},
		{"[::1]:80", "/", "v6", ""}, {"[::1]", "/", "v6", ""},
		{"a.b.example.com", "/", "any", ""}, {".example.com", "/x", "any", ""}, {"example.com", "/x", "any", ""},
		{strings.Repeat("a", 300) + ".example.com", "/x", "any", ""},
	} {
		if got := r.Lookup("GET", test.host, test.path, &m); got != router.OutcomeFound {
			t.Errorf("%s %s: got %v", test.host, test.path, got)
		} else if m.Route().Value != test.want || values(&m, test.host, test.path) != test.values {
			t.Errorf("%.40s %s: got %s %s", test.host, test.path, m.Route().Value, values(&m, test.host, test.path))
		}
	}
	if got := r.Lookup("PUT", "a.b.example.com", "/", &m); got != router.OutcomeMethodNotAllowed || m.Allow() != "GET, HEAD, POST, OPTIONS" {
		t.Errorf("methods of all hosts: got %v, %q", got, m.Allow())
	}
}

func TestVersions(t *testing.T) {
	r := build(t,
		route{Methods: "GET", Pattern: "/a", Version: "v2", Value: "a2"},
		route{Methods: "GET", Pattern: "/a", Version: "v10", Value: "a10"},
		route{Methods: "GET", Pattern: "/b", Value: "b"},
		route{Methods: "GET", Pattern: "/b", Version: "v1", Value: "b1"},
		route{Methods: "GET", Pattern: "/c", Value: "c"},
		route{Methods: "POST", Pattern: "/a", Version: "v3", Value: "post"},
	)
	if !r.Versioned() {
		t.Error("Versioned: got false")
	}
	var m router.Match[string]
	for _, test := range []struct{ path, accept, want string }{
		{"/a", "", "a10"}, {"/a", "*/*", "a10"}, {"/a", "application/json", "a10"},
		{"/a", "application/vnd.acme.v2+json", "a2"}, {"/a", "Application/VND.Acme.V2+json", "a2"},
		{"/a", "application/vnd.acme.v2.raw", "a2"},
		{"/a", "application/vnd.acme.v2;q=0.5, application/vnd.acme.v10;q=0.4", "a2"},
		{"/a", "application/vnd.acme.v2, application/vnd.acme.v10", "a10"},
		{"/a", "application/vnd.acme.v9+json", "406 v2 v3 v10"}, {"/a", "application/vnd.acme.v2;q=0", "406 v2 v3 v10"},
		{"/a", "application/vnd.acme.v3+json", "406 v2 v3 v10"},
		{"/a", "application/vnd.acme.v9+json, */*;q=0.1", "a10"},
		{"/a", "application/vnd.ms-excel", "a10"}, {"/a", "application/vnd.acme.vx", "a10"},
		{"/a", "application/vnd.acme.v2;q=2", "406 v2 v3 v10"}, {"/a", "application/vnd.acme.v2;q=0.x", "406 v2 v3 v10"},
		{"/b", "", "b"}, {"/b", "text/html", "b"}, {"/b", "application/vnd.x.v1", "b1"}, {"/b", "application/vnd.x.v2", "406 v1"},
		{"/c", "application/vnd.x.v2", "c"},
	} {
		got := ""
		switch outcome := r.LookupAccept("GET", "", test.path, test.accept, &m); outcome {
		case router.OutcomeFound:
			got = m.Route().Value
		case router.OutcomeNotAcceptable:
			got = "406 " + strings.Join(m.Versions(), " ")
		default:
			got = outcome.String()
		}
		if got != test.want {
			t.Errorf("%s, Accept %q: got %s, want %s", test.path, test.accept, got, test.want)
		}
	}
}
