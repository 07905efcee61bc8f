package middleware

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// user is the authenticated user of a request.
var user = dunlin.NewKey[string]("middleware.User")

// User returns the name of the authenticated user, as set by [BasicAuth], [KeyAuth], module auth's
// Tokens or [SetUser]. It returns "" if there is none.
func User(r *dunlin.Request) string {
	name, _ := user.Get(r)
	return name
}

// SetUser sets the name that [User] returns. Call it from your own authentication, with a name that
// the client has proved: other middleware distinguishes clients by this name. A [ResponseCache] then
// stores the response only if its Cache-Control has public or s-maxage.
func SetUser(r *dunlin.Request, name string) {
	user.Set(r, name)
	inside.Credentials(r, exchange.Identified, false)
}

// maxCredentials is the maximum length of credentials, in bytes.
const maxCredentials = 4 << 10

// BasicAuthConfig has the settings of [BasicAuth].
type BasicAuthConfig struct {
	// Realm describes to users what the password is for.
	Realm string

	// Check reports whether a user name and password are right. It must be safe for concurrent use.
	// Its running time must not depend on how much of a password is right. [Passwords] makes a Check.
	Check func(r *dunlin.Request, name, password string) bool
}

// BasicAuth lets a request pass if Check accepts its user name and password (RFC 7617), and answers
// other requests with 401. [User] returns the accepted name. Each request contains the password, so
// use BasicAuth only with TLS. BasicAuth panics if Check is nil or Realm has control characters.
func BasicAuth(c BasicAuthConfig) dunlin.Middleware {
	if c.Check == nil {
		panic("middleware: BasicAuthConfig.Check is nil")
	}
	challenge := dunlin.NewHeaderBlock("WWW-Authenticate", "Basic realm="+quoted("BasicAuth", c.Realm)+`, charset="UTF-8"`, "Cache-Control", "no-store")
	return func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			name, password, ok := basicCredentials(r.HeaderList("Authorization")) // two lines are invalid: an upstream might use the second
			if !ok || !c.Check(r, name, password) {
				return unauthorized("a user name and password are required").With(challenge)
			}
			SetUser(r, name)
			return next(r)
		}
	}
}

func unauthorized(detail string) dunlin.Response {
	return dunlin.Problem(&dunlin.ProblemDetails{Status: http.StatusUnauthorized, Detail: detail})
}

// basicCredentials reads an Authorization header of the scheme Basic.
func basicCredentials(header string) (name, password string, ok bool) {
	token, ok := credentials(header, "Basic")
	if !ok {
		return "", "", false
	}
	text, err := base64.StdEncoding.Strict().DecodeString(token)
	if strings.ContainsAny(token, "\r\n") { // package base64 skips them
		return "", "", false
	}
	if err != nil {
		return "", "", false
	}
	for _, c := range text {
		if c < ' ' || c == 0x7f { // RFC 7617 section 2
			return "", "", false
		}
	}
	return strings.Cut(string(text), ":")
}

// credentials returns the text after the scheme in an Authorization header.
func credentials(header, scheme string) (string, bool) {
	if len(header) > maxCredentials || len(header) <= len(scheme) || header[len(scheme)] != ' ' || !strings.EqualFold(header[:len(scheme)], scheme) {
		return "", false
	}
	token := strings.TrimLeft(header[len(scheme):], " ")
	return token, token != ""
}

// quoted returns text as a quoted string (RFC 9110 section 5.6.4).
func quoted(who, text string) string {
	for i := 0; i < len(text); i++ {
		if text[i] < ' ' || text[i] == 0x7f {
			panic(fmt.Sprintf("middleware: %s: realm %q has a control character", who, text))
		}
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

// A digester makes keyed digests of secrets. The running time of comparing two digests reveals
// nothing, because clients cannot predict a digest.
type digester [sha256.Size]byte

func newDigester() *digester {
	var key digester
	_, _ = rand.Read(key[:]) // never fails
	return &key
}

func (d *digester) sum(secret string) (sum [sha256.Size]byte) {
	mac := hmac.New(sha256.New, d[:])
	_, _ = mac.Write([]byte(secret))
	mac.Sum(sum[:0])
	return sum
}

// Passwords returns a check for [BasicAuth] with the passwords of a few users, by name. Its running
// time reveals neither passwords nor names. Keep many users, or passwords chosen by people, in a
// database with hashes of bcrypt or Argon2. Passwords panics for an empty name or password, or a
// name with a colon.
func Passwords(byUser map[string]string) func(r *dunlin.Request, name, password string) bool {
	key := newDigester()
	sums := make(map[string][sha256.Size]byte, len(byUser))
	for name, password := range byUser {
		if name == "" || strings.Contains(name, ":") || password == "" {
			panic(fmt.Sprintf("middleware: Passwords: user %q: a name must not be empty or have a colon, nor a password be empty", name))
		}
		sums[name] = key.sum(password)
	}
	return func(_ *dunlin.Request, name, password string) bool {
		got := key.sum(password)
		want, known := sums[name]
		return hmac.Equal(got[:], want[:]) && known
	}
}

// KeyAuthConfig has the settings of [KeyAuth].
type KeyAuthConfig struct {
	// Header is the name of the request header with the key. In Authorization the key follows
	// Scheme. Default: Authorization.
	Header string

	// Scheme is the scheme in Authorization. Default: Bearer (RFC 6750).
	Scheme string

	// Realm describes the purpose of the key to clients. Default: not sent.
	Realm string

	// Check returns the user of a key, and whether the request may pass. It must be safe for
	// concurrent use. Its running time must not depend on how much of a key is right: see [Keys].
	Check func(r *dunlin.Request, key string) (user string, ok bool)

	// Optional lets requests without the header pass; [User] returns "" for them. A key that Check
	// rejects, or another scheme, is still answered with 401. Responses name the header in Vary.
	Optional bool
}

// KeyAuth lets a request pass if Check accepts its key, and answers other requests with 401. It is
// for clients that are programs. [User] returns the user that Check has returned. If the key is in
// another header than Authorization, responses name that header in Vary, because caches share
// responses to requests with such a header, unlike responses to requests with Authorization. KeyAuth
// panics for an invalid setting.
func KeyAuth(c KeyAuthConfig) dunlin.Middleware {
	if c.Check == nil {
		panic("middleware: KeyAuth: nil Check")
	}
	if c.Header == "" {
		c.Header = "Authorization"
	}
	byScheme := strings.EqualFold(c.Header, "Authorization")
	if c.Scheme == "" {
		c.Scheme = "Bearer"
	}
	if !isToken(c.Header) || !isToken(c.Scheme) {
		panic(fmt.Sprintf("middleware: KeyAuth: Header is %q and Scheme %q: both must be names", c.Header, c.Scheme))
	}
	// RFC 9110 section 11.6.1 requires a challenge in every 401, also for keys in other headers.
	scheme, params := c.Scheme, []string(nil)
	if c.Realm != "" {
		params = append(params, "realm="+quoted("KeyAuth", c.Realm))
	}
	if !byScheme {
		scheme, params = "Key", append(params, "header="+quoted("KeyAuth", c.Header))
	}
	missing := strings.TrimSuffix(scheme+" "+strings.Join(params, ", "), " ")
	if byScheme && strings.EqualFold(scheme, "Bearer") { // RFC 6750 section 3.1
		params = append(params, `error="invalid_token"`)
	}
	invalid := strings.TrimSuffix(scheme+" "+strings.Join(params, ", "), " ")
	blockMissing := dunlin.NewHeaderBlock("WWW-Authenticate", missing, "Cache-Control", "no-store")
	blockInvalid := dunlin.NewHeaderBlock("WWW-Authenticate", invalid, "Cache-Control", "no-store")
	vary, varies := dunlin.NewHeaderBlock("Vary", c.Header), !byScheme || c.Optional
	return func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			key := r.HeaderList(c.Header)
			if key == "" && c.Optional {
				return varyOn(next(r), c.Header, vary)
			}
			ok := key != "" && len(key) <= maxCredentials
			if byScheme && ok {
				key, ok = credentials(key, c.Scheme)
			}
			if !ok {
				return unauthorized("a key is needed").With(blockMissing)
			}
			name, ok := c.Check(r, key)
			if !ok {
				return unauthorized("the key is not valid").With(blockInvalid)
			}
			SetUser(r, name)
			resp := next(r)
			if varies {
				resp = varyOn(resp, c.Header, vary)
			}
			return resp
		}
	}
}

// Keys returns a Check for [KeyAuth] with a few keys, by user. Its running time reveals nothing
// about the keys. Keys panics if a key is shorter than 16 bytes, or if two users have the same key.
func Keys(byUser map[string]string) func(r *dunlin.Request, key string) (user string, ok bool) {
	digest := newDigester()
	users := make(map[[sha256.Size]byte]string, len(byUser))
	for name, key := range byUser {
		if len(key) < 16 {
			panic(fmt.Sprintf("middleware: Keys: the key of %q has %d bytes: fewer than 16 can be guessed", name, len(key)))
		}
		users[digest.sum(key)] = name
	}
	if len(users) < len(byUser) {
		panic("middleware: Keys: two users have the same key")
	}
	return func(_ *dunlin.Request, key string) (string, bool) {
		name, ok := users[digest.sum(key)]
		return name, ok
	}
}
