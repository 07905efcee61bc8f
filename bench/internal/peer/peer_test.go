package peer

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestNamed(t *testing.T) {
	got, err := Named([]string{"floor", "chi"})
	if err != nil || len(got) != 2 || got[0].Name != "floor" || got[1].Name != "chi" {
		t.Errorf("got %v (%v), want floor and chi", got, err)
	}
	if _, err := Named([]string{"chi", "cherry"}); err == nil || !strings.Contains(err.Error(), "cherry") {
		t.Errorf("got error %v, want the unknown peer in it", err)
	}
}

func TestNamesAreUnique(t *testing.T) {
	peers, checks := map[string]bool{}, map[string]bool{}
	for _, check := range Checks {
		if checks[check.Name] {
			t.Errorf("got two checks with the name %s", check.Name)
		}
		checks[check.Name] = true
	}
	for _, peer := range All {
		if peers[peer.Name] {
			t.Errorf("got two peers with the name %s", peer.Name)
		}
		peers[peer.Name] = true
		for _, name := range peer.Only {
			if !checks[name] {
				t.Errorf("%s: unknown check %q", peer.Name, name)
			}
		}
	}
}

func TestLockedVersion(t *testing.T) {
	lock := []byte("[[package]]\nname = \"axum-core\"\nversion = \"0.5.0\"\n\n[[package]]\nname = \"axum\"\nversion = \"0.8.9\"\n")
	if got := lockedVersion(lock, "axum"); got != "0.8.9" {
		t.Errorf("got version %q, want 0.8.9", got)
	}
	if got := lockedVersion(lock, "actix"); got != "" {
		t.Errorf("version %q of a crate that is not there", got)
	}
}

func TestCheckJudges(t *testing.T) {
	const right = `{"message":"Hello, World!"}`
	for _, test := range []struct {
		name, contentType, body string
		status                  int
		complaint               string // "": none
	}{
		{"as the reference", "application/json", right, 200, ""},
		{"with charset and newline", "application/json; charset=utf-8", right + "\n", 200, ""},
		{"other status", "application/json", right, 404, "status 404"},
		{"other type", "text/plain", right, 200, `Content-Type "text/plain"`},
		{"other body", "application/json", `{"message":"Hello, Moon!"}`, 200, "at byte 19"},
		{"cut short", "application/json", right[:10], 200, "10 bytes, want 27"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", test.contentType)
			w.WriteHeader(test.status)
			io.WriteString(w, test.body)
		}))
		err := Checks[1].Do(t.Context(), server.Client(), "http", strings.TrimPrefix(server.URL, "http://"))
		server.Close()
		switch {
		case test.complaint == "" && err != nil:
			t.Errorf("%s: %v, want no error", test.name, err)
		case test.complaint != "" && (err == nil || !strings.Contains(err.Error(), test.complaint)):
			t.Errorf("%s: got %v, want an error with %q", test.name, err, test.complaint)
		}
	}
}

func TestCheckOfMissingWait(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	for _, check := range Checks {
		if check.AtLeast == 0 {
			continue
		}
		check.AtLeast = 1 << 62 // no machine is slow enough
		err := check.Do(t.Context(), server.Client(), "http", strings.TrimPrefix(server.URL, "http://"))
		if err == nil || !strings.Contains(err.Error(), "answered after") {
			t.Errorf("%s: %v, want an error about the missing wait", check.Name, err)
		}
	}
}
