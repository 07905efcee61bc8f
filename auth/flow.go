package auth

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
)

// A flow is a login in progress. It is stored in a sealed cookie of the browser. So no other browser can
// finish the login, and an attacker cannot make this browser finish the attacker's login.
type flow struct {
	Slot   string // number of its cookie, see flows
	Secret string // key from which state, nonce and verifier are derived
	To     string // local path after the login
	Began  int64  // start of the login, in seconds since 1970
}

// state is the state parameter, which the provider returns in the URL. It begins with the slot.
func (f *flow) state() string { return f.Slot + f.derive("state") }

// nonce is the nonce, which the provider returns in the ID token.
func (f *flow) nonce() string { return f.derive("nonce") }

// verifier is the code verifier of PKCE, which is sent to the provider together with the code.
func (f *flow) verifier() string { return f.derive("verifier") }

// derive returns a string of 43 characters, the minimum length of a verifier (RFC 7636 section
// 4.1). It reveals nothing about the other derived strings.
func (f *flow) derive(what string) string {
	h := hmac.New(sha256.New, []byte(f.Secret))
	_, _ = h.Write([]byte(what)) // a hash returns no error
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// flows stores logins in progress in cookies. Several tabs of a browser may log in at once, each with
// one of a fixed number of cookies, the slots. The number is fixed so that a page of another origin that
// begins many logins cannot make the Cookie header too large for a request.
type flows struct {
	keys     *middleware.KeyRing
	name     string // prefix of the cookies' names; the number of the slot follows
	within   time.Duration
	insecure bool
}

const slots = 8 // the number of a slot is one digit

func newFlows(keys *middleware.KeyRing, issuer, client string, within time.Duration, insecure bool) flows {
	sum := sha256.Sum256([]byte(issuer + " " + client)) // different providers use different cookies
	name := "login-" + hex.EncodeToString(sum[:4]) + "-"
	if !insecure {
		name = "__Host-" + name
	}
	return flows{keys, name, within, insecure}
}

// begin returns a new flow. Its slot is one for which the browser of r has no cookie, so that the other
// logins of the browser continue. If the browser has all cookies, the flow replaces the oldest login.
func (s *flows) begin(r *dunlin.Request, to string) *flow {
	f := &flow{Secret: rand.Text(), To: to, Began: time.Now().Unix()}
	first, since := mathrand.IntN(slots), int64(math.MaxInt64) // a random slot, since tabs that begin at the same moment send the same cookies
	for i := range slots {
		slot := strconv.Itoa((first + i) % slots)
		cookie := r.Cookie(s.name + slot)
		if cookie == "" {
			f.Slot = slot
			break
		}
		began := int64(0) // a cookie that cannot be opened counts as oldest
		if old, err := s.open(slot, cookie); err == nil {
			began = old.Began
		}
		if began < since {
			f.Slot, since = slot, began
		}
	}
	return f
}

func (s *flows) cookie(f *flow) *http.Cookie {
	text, err := json.Marshal(f)
	if err != nil {
		panic("auth: a login as JSON: " + err.Error()) // cannot happen, because a flow has only strings and a number
	}
	name := s.name + f.Slot
	// SameSite is Lax because the provider's redirect is a navigation from another site.
	return &http.Cookie{
		Name: name, Value: s.keys.Seal("login "+name, text), Path: "/", MaxAge: max(int(s.within/time.Second), 1),
		Secure: !s.insecure, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	}
}

// open returns the flow in a cookie.
func (s *flows) open(slot, cookie string) (*flow, error) {
	text, err := s.keys.Open("login "+s.name+slot, cookie)
	if err != nil {
		return nil, err
	}
	f := new(flow)
	return f, json.Unmarshal(text, f)
}

// gone returns the cookie that removes the cookie of a flow.
func (s *flows) gone(f *flow) *http.Cookie {
	return &http.Cookie{Name: s.name + f.Slot, Path: "/", MaxAge: -1, Secure: !s.insecure, HttpOnly: true, SameSite: http.SameSiteLaxMode}
}

// errNoFlow lists all possible reasons, so that a client does not learn which reason applies.
var errNoFlow = &dunlin.ProblemDetails{
	Status: http.StatusBadRequest,
	Detail: "the login was not begun in this browser, was begun at another address of this service, took too long, or has already ended: begin it again",
}

// find returns the flow that a request to the callback finishes.
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
	if state == "" || state[0] < '0' || state[0] >= '0'+slots {
		return nil, errNoFlow
	}
	f, err := s.open(state[:1], r.Cookie(s.name+state[:1]))
	if err != nil || subtle.ConstantTimeCompare([]byte(f.state()), []byte(state)) != 1 || time.Since(time.Unix(f.Began, 0)) >= s.within {
		return nil, errNoFlow
	}
	return f, nil
}

// longestPath is the maximum length of the path after a login, in bytes. The path is stored
// in a cookie.
const longestPath = 512

// localPath returns to if it is a path of this host for every browser. Otherwise it returns home.
// Browsers treat a backslash as a slash, and remove tabs and line breaks, so that "/\host" and
// "/<tab>/host" name another host. localPath escapes characters that must be escaped in a URL.
func localPath(to, home string) string {
	if to == "" || to[0] != '/' || strings.HasPrefix(to, "//") || strings.ContainsRune(to, '\\') {
		return home
	}
	var b strings.Builder
	for i := range len(to) {
		switch c := to[i]; {
		case c < ' ' || c == 0x7f:
			return home
		case c == ' ' || c > 0x7f || strings.IndexByte("\"<>^`{|}", c) >= 0:
			fmt.Fprintf(&b, "%%%02X", c)
		default:
			b.WriteByte(c)
		}
	}
	to = strings.TrimSuffix(b.String(), "?")
	if u, err := url.Parse(to); err != nil || len(to) > longestPath || u.Host != "" || u.Scheme != "" || u.User != nil {
		return home
	}
	return to
}
