package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
)

// A flow is a login that has begun, as the browser keeps it: sealed, so that nobody else can finish it, and nobody has another finish theirs.
type flow struct {
	State    string // comes back in the URL
	Nonce    string // comes back in the ID token
	Verifier string // of PKCE: shown to the provider with the code
	To       string // where to then
	Began    int64  // in seconds since 1970
}

func newFlow(to string) *flow {
	return &flow{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), To: to, Began: time.Now().Unix()}
}

// flows puts logins that have begun into cookies. Tabs may log in side by side, each by a cookie of a few: however many logins a page
// of somebody else begins, the cookies stay small enough for a request.
type flows struct {
	keys     *middleware.KeyRing
	name     string // of cookies, before the slot
	within   time.Duration
	insecure bool
}

const slots = 4 // must be a power of two

func newFlows(keys *middleware.KeyRing, issuer, client string, within time.Duration, insecure bool) flows {
	sum := sha256.Sum256([]byte(issuer + " " + client)) // several providers do not meet
	name := "login-" + hex.EncodeToString(sum[:4]) + "-"
	if !insecure {
		name = "__Host-" + name
	}
	return flows{keys, name, within, insecure}
}

// cookieName returns the name of the cookie that a state is in.
func (s *flows) cookieName(state string) string {
	return s.name + string('0'+state[0]%slots)
}

func (s *flows) cookie(f *flow) *http.Cookie {
	text, err := json.Marshal(f)
	if err != nil {
		panic("auth: a login as JSON: " + err.Error()) // it is strings
	}
	name := s.cookieName(f.State)
	// Lax: the provider's redirect is a navigation from another site.
	return &http.Cookie{
		Name: name, Value: s.keys.Seal("login "+name, text), Path: "/", MaxAge: max(int(s.within/time.Second), 1),
		Secure: !s.insecure, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	}
}

// gone is the cookie that removes a flow's.
func (s *flows) gone(f *flow) *http.Cookie {
	return &http.Cookie{Name: s.cookieName(f.State), Path: "/", MaxAge: -1, Secure: !s.insecure, HttpOnly: true, SameSite: http.SameSiteLaxMode}
}

// errNoFlow does not say which of these it is.
var errNoFlow = &dunlin.ProblemDetails{
	Status: http.StatusBadRequest,
	Detail: "the login was not begun in this browser, was begun at another address of this service, took too long, or has ended already: begin it again",
}

// find returns the flow that a request to the callback is the end of.
func (s *flows) find(r *dunlin.Request) (*flow, error) {
	for _, name := range []string{"state", "code", "iss", "error"} {
		n := 0
		for range r.QueryAll(name) {
			if n++; n > 1 { // RFC 6749 section 3.1
				return nil, &dunlin.ProblemDetails{Status: http.StatusBadRequest, Detail: "the parameter " + name + " is there several times"}
			}
		}
	}
	state := r.Query("state")
	if state == "" {
		return nil, errNoFlow
	}
	name := s.cookieName(state)
	text, err := s.keys.Open("login "+name, r.Cookie(name))
	if err != nil {
		return nil, errNoFlow
	}
	f := new(flow)
	if err := json.Unmarshal(text, f); err != nil {
		return nil, errNoFlow
	}
	if subtle.ConstantTimeCompare([]byte(f.State), []byte(state)) != 1 || time.Since(time.Unix(f.Began, 0)) >= s.within {
		return nil, errNoFlow
	}
	return f, nil
}

// longestPath bounds a path to go to after a login, in bytes: it is in a cookie.
const longestPath = 512

// localPath returns to if a browser that is sent there stays at this host, else home. Browsers take a backslash for a slash, and drop
// tabs and line ends.
func localPath(to, home string) string {
	if to == "" || to[0] != '/' || len(to) > longestPath || strings.HasPrefix(to, "//") || strings.ContainsRune(to, '\\') {
		return home
	}
	for i := range len(to) {
		if to[i] <= ' ' || to[i] >= 0x7f {
			return home
		}
	}
	if u, err := url.Parse(to); err != nil || u.Host != "" || u.Scheme != "" || u.User != nil {
		return home
	}
	return to
}
