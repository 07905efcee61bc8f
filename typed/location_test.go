package typed_test

import (
	"testing"

	"github.com/dunlinhttp/dunlin/typed"
)

// A Location is sent as a URI reference; one with a control character is an error.
func TestLocationIsAURIReference(t *testing.T) {
	for location, want := range map[string]string{
		"/items/1?a=b#c":             "/items/1?a=b#c",
		"https://[::1]:80/a%2Fb":     "https://[::1]:80/a%2Fb",
		"/items/ä b":                 "/items/%C3%A4%20b",
		"/100%/%4/%zz/%41":           "/100%25/%254/%25zz/%41",
		`/a\b"<c>^d` + "`{e|f}":      "/a%5Cb%22%3Cc%3E%5Ed%60%7Be%7Cf%7D",
		"/a\r\nSet-Cookie: user=eve": "",
		"/a\x00":                     "",
	} {
		app := quiet()
		give(app, "/created", typed.Created[item]{Location: location, Body: item{ID: 1}}, nil)
		give(app, "/accepted", typed.Accepted[item]{Location: location}, nil)
		for path, status := range map[string]int{"/created": 201, "/accepted": 202} {
			if want == "" {
				status = 500
			}
			got := ask(t, app, "GET "+path)
			if got.status != status || got.header.Get("Location") != want {
				t.Errorf("%q: got %d, Location %q", location, got.status, got.header.Get("Location"))
			}
		}
	}
}
