package dunlintest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// JSON sends a request to app in memory, decodes the JSON response body into out, and returns the status:
//
//	var user User
//	if status := dunlintest.JSON(t, app, "POST", "/users", NewUser{Name: "Ada"}, &user); status != 201 {
//		t.Errorf("status %d", status)
//	}
//
// path may contain a query, or be a URL with scheme and host. in is encoded as the JSON request body; nil sends no
// body. out is a pointer. If out is nil, or the response has no body, nothing is decoded. edit functions change the
// request before it is sent, for example to add credentials. Redirects are not followed. The test fails at once if the
// body cannot be decoded. The body of a response with a status of 400 or more is logged.
func JSON(t testing.TB, app *dunlin.App, method, path string, in, out any, edit ...func(*http.Request)) (status int) {
	t.Helper()
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			t.Fatalf("dunlintest: encode the body of %s %s: %v", method, path, err)
		}
		body = bytes.NewReader(text)
	}
	target := path
	if strings.HasPrefix(path, "/") {
		target = "http://test.example" + path
	}
	r, err := http.NewRequestWithContext(t.Context(), method, target, body)
	if err != nil {
		t.Fatalf("dunlintest: %s %s: %v", method, path, err)
	}
	r.Header.Set("Accept", "application/json, application/problem+json")
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, f := range edit {
		f(r)
	}
	resp, err := NewTransport(app).RoundTrip(r)
	if err != nil {
		t.Fatalf("dunlintest: %s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("dunlintest: read the answer of %s %s: %v", method, path, err)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		t.Logf("%s %s is answered %d %s", method, path, resp.StatusCode, text)
	}
	if out != nil && len(text) > 0 {
		if err := json.Unmarshal(text, out); err != nil {
			t.Fatalf("dunlintest: decode the answer %d of %s %s: %v\n%s", resp.StatusCode, method, path, err, text)
		}
	}
	return resp.StatusCode
}
