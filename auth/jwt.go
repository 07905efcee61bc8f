// Package auth authenticates requests: by JSON Web Tokens of a trusted issuer (RFC 7519, RFC 6750),
// see [Tokens], and by logins at an OpenID Connect provider, see [Login]. It is a separate module,
// which depends on golang-jwt, go-oidc and golang.org/x/oauth2.
//
//	tokens := auth.NewTokens(auth.Config{Issuer: "https://id.example.com", Audience: "shop", KeySet: "https://id.example.com/jwks"})
//	api := app.Group("/api", tokens.Middleware())
//
//	jwt.go       settings, validation of tokens, the middleware
//	keyset.go    the issuer's keys: fetching and rotation
//	login.go     the actions of a login
//	flow.go      the cookie of a login in progress
//	refresh.go   renewal of access tokens
//	provider.go  metadata of the provider, and identities
package auth

import (
	"context"
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
)

// Config names the issuer whose tokens are accepted. Issuer, Audience and one of KeySet, Keys and
// Secrets must be set. Any other zero field selects its documented default.
type Config struct {
	Issuer   string // required value of the claim iss
	Audience string // required member of the claim aud

	// KeySet is the URL of the issuer's JSON Web Key Set (RFC 7517). The key set is fetched when a token
	// names an unknown key, by one request at a time and at most once in MinRefresh, so that tokens with
	// invented key names cannot cause more fetches. While tokens arrive, it is also fetched in the
	// background once an hour, so that keys that the issuer has withdrawn are no longer accepted.
	KeySet     string
	MinRefresh time.Duration // minimum time between two fetches. Default: 30 s
	Timeout    time.Duration // maximum time of a fetch. Default: 5 s
	Client     *http.Client  // Default: http.DefaultClient

	// Insecure permits a KeySet URL without TLS, for development. Anyone on the network path can
	// then replace the keys.
	Insecure bool

	// Keys are public keys by their names (kid), as an alternative to KeySet: *rsa.PublicKey of at
	// least 2048 bits, *ecdsa.PublicKey and ed25519.PublicKey.
	Keys map[string]crypto.PublicKey

	// Secrets are shared secrets by their names (kid), as an alternative to KeySet and Keys, for
	// tokens that are signed by HMAC. A secret must be random and at least as long as the hash, 32
	// bytes for HS256 (RFC 7518 section 3.2). Every service that checks tokens by a secret can also
	// issue tokens: prefer Keys between services.
	Secrets map[string][]byte

	// Methods are the accepted signature algorithms: algorithms of public keys or, with Secrets,
	// algorithms of HMAC. "none" is never accepted. Default: RS256, ES256 and EdDSA, or HS256 with
	// Secrets.
	Methods []string

	// Types are the accepted values of the header parameter typ, compared without case and without
	// "application/". "" accepts tokens without typ. Tokens of other types are refused, because the
	// issuer may issue them for another purpose (RFC 8725 section 3.11). Default: "", "JWT" and
	// "at+jwt".
	Types []string

	// AllowBound accepts tokens that are bound to a key of the client (claim cnf: DPoP, RFC 9449;
	// client certificates, RFC 8705). Tokens does not check that the client has the key: set
	// AllowBound only if other code checks it. Default: such tokens are refused.
	AllowBound bool

	// Scheme is the authentication scheme in the Authorization field. Default: Bearer (RFC 6750).
	Scheme string

	// Optional lets requests without an Authorization field pass; [Tokens.Claims] returns nil for
	// them. An invalid token or another scheme is still answered with 401. Responses have Vary:
	// Authorization.
	Optional bool

	// Leeway is the tolerated difference between clocks. Default: 30 s.
	Leeway time.Duration
}

// Claims are the claims of a valid token. Subject is never empty.
type Claims struct {
	jwt.RegisteredClaims

	Scope string `json:"scope,omitempty"` // words separated by spaces (RFC 8693)

	members map[string]json.RawMessage
}

// HasScope reports whether the scope contains a word.
func (c *Claims) HasScope(scope string) bool { return slices.Contains(strings.Fields(c.Scope), scope) }

// ErrNoClaim reports that a token does not have a claim.
var ErrNoClaim = errors.New("auth: the token does not have the claim")

// Claim decodes a claim into v, like encoding/json. The name is compared exactly: the claim "Tenant"
// does not match "tenant", since an issuer may let its users choose other claims. The error wraps
// ErrNoClaim if the claim is missing or null, or if c is nil.
func (c *Claims) Claim(name string, v any) error {
	if c == nil || c.members[name] == nil || string(c.members[name]) == "null" {
		return fmt.Errorf("%w %q", ErrNoClaim, name)
	}
	if err := json.Unmarshal(c.members[name], v); err != nil {
		return fmt.Errorf("auth: decode claim %q: %w", name, err)
	}
	return nil
}

// Tokens validates tokens. It is safe for concurrent use.
type Tokens struct {
	config           Config
	parser           *jwt.Parser
	keys             *keySet
	missing, invalid string // WWW-Authenticate challenges
}

// methodsKnown lists the signature algorithms of public keys. hmacKnown has the signature algorithms
// of secrets, with the minimum length of a secret in bytes.
var (
	methodsKnown = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
	hmacKnown    = map[string]int{"HS256": 32, "HS384": 48, "HS512": 64}
)

// NewTokens returns Tokens with the settings c. It panics for an invalid setting.
func NewTokens(c Config) *Tokens {
	switch {
	case c.Methods == nil && c.Secrets != nil:
		c.Methods = []string{"HS256"}
	case c.Methods == nil:
		c.Methods = []string{"RS256", "ES256", "EdDSA"}
	}
	if c.Types == nil {
		c.Types = []string{"", "JWT", "at+jwt"}
	}
	if c.Scheme == "" {
		c.Scheme = "Bearer"
	}
	if c.Leeway == 0 {
		c.Leeway = 30 * time.Second
	}
	if c.MinRefresh == 0 {
		c.MinRefresh = 30 * time.Second
	}
	if c.Timeout == 0 {
		c.Timeout = 5 * time.Second
	}
	if c.Client == nil {
		c.Client = http.DefaultClient
	}
	if err := c.validate(); err != nil {
		panic("auth: " + err.Error())
	}
	t := &Tokens{
		config:  c,
		missing: c.Scheme,
		invalid: c.Scheme,
		parser: jwt.NewParser(jwt.WithValidMethods(c.Methods), jwt.WithIssuer(c.Issuer), jwt.WithAudience(c.Audience),
			jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithLeeway(c.Leeway), jwt.WithStrictDecoding()),
		keys: newKeySet(&c),
	}
	if strings.EqualFold(c.Scheme, "Bearer") { // RFC 6750 section 3.1
		t.invalid += ` error="invalid_token"`
	}
	return t
}

func (c *Config) validate() error {
	given := 0
	for _, source := range []bool{c.KeySet != "", c.Keys != nil, c.Secrets != nil} {
		if source {
			given++
		}
	}
	switch {
	case c.Issuer == "" || c.Audience == "":
		return errors.New("Config.Issuer and Audience must be given: a token of any issuer, or for any audience, proves nothing")
	case given != 1:
		return errors.New("Config must have one of KeySet, Keys and Secrets")
	case c.Leeway < 0 || c.MinRefresh < 0 || c.Timeout < 0:
		return fmt.Errorf("Config.Leeway, MinRefresh and Timeout (%v, %v, %v) must not be negative", c.Leeway, c.MinRefresh, c.Timeout)
	case !isToken(c.Scheme):
		return fmt.Errorf("Config.Scheme is %q, which is not a token of RFC 9110", c.Scheme)
	}
	if u, err := url.Parse(c.KeySet); c.KeySet != "" {
		switch {
		case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
			return fmt.Errorf("Config.KeySet is %q, which is not an absolute https URL", c.KeySet)
		case u.Scheme == "http" && !c.Insecure:
			return fmt.Errorf("Config.KeySet is %q: without TLS anyone on the network path can replace the keys; use https, or set Config.Insecure for development", c.KeySet)
		}
	}
	return c.validateKeys()
}

func (c *Config) validateKeys() error {
	for _, m := range c.Methods {
		least, hmac := hmacKnown[m]
		switch {
		case c.Secrets != nil && !hmac:
			return fmt.Errorf("Config.Methods has %q: with Secrets it must be HS256, HS384 or HS512", m)
		case c.Secrets == nil && !slices.Contains(methodsKnown, m):
			return fmt.Errorf("Config.Methods has %q: without Secrets it must be one of %s", m, strings.Join(methodsKnown, ", "))
		}
		for name, secret := range c.Secrets {
			if len(secret) < least {
				return fmt.Errorf("Config.Secrets has %q of %d bytes: %s needs at least %d (RFC 7518 section 3.2)", name, len(secret), m, least)
			}
		}
	}
	for name, key := range c.Keys {
		if err := checkPublic(key); err != nil {
			return fmt.Errorf("Config.Keys has %q, which is %w", name, err)
		}
	}
	return nil
}

// isToken reports whether s is a token (RFC 9110 section 5.6.2).
func isToken(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

// longestToken is the maximum length of a token, in bytes.
const longestToken = 16 << 10

// Middleware returns middleware that answers 401 to requests without a valid token in the
// Authorization field, and 503 while the issuer's keys are not known. The reason why a token is
// invalid is logged, and not sent to the client. [middleware.User] returns the subject of an
// accepted request.
func (t *Tokens) Middleware() dunlin.Middleware {
	return func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			field := r.HeaderList("Authorization")
			if field == "" && t.config.Optional {
				return t.vary(next(r))
			}
			scheme, token, _ := strings.Cut(field, " ")
			if !strings.EqualFold(scheme, t.config.Scheme) || token == "" {
				return t.vary(refuse(t.missing, nil))
			}
			claims, err := t.Check(r.Context(), strings.Trim(token, " "))
			if errors.Is(err, ErrNoKeys) {
				return dunlin.Problem(&dunlin.ProblemDetails{Status: http.StatusServiceUnavailable, Detail: "tokens cannot be checked at the moment", Cause: err}).
					Header("Retry-After", "5")
			}
			if err != nil {
				return t.vary(refuse(t.invalid, err))
			}
			before, _ := acceptedKey.Get(r)
			acceptedKey.Set(r, &accepted{t, claims, before})
			middleware.SetUser(r, claims.Subject)
			return t.vary(next(r))
		}
	}
}

// vary adds Vary if requests without an Authorization field pass. Without Vary a cache could send their
// responses to requests with the field.
func (t *Tokens) vary(resp dunlin.Response) dunlin.Response {
	if !t.config.Optional {
		return resp
	}
	return resp.AddHeader("Vary", "Authorization")
}

func refuse(challenge string, cause error) dunlin.Response {
	return dunlin.Problem(&dunlin.ProblemDetails{Status: http.StatusUnauthorized, Detail: "a valid token is needed", Cause: cause}).
		Header("WWW-Authenticate", challenge)
}

// accepted is a token that the middleware of Tokens has accepted. before is the token accepted by an outer middleware, or
// nil.
type accepted struct {
	by     *Tokens
	claims *Claims
	before *accepted
}

var acceptedKey = dunlin.NewKey[*accepted]("token")

// Claims returns the claims of a request's token. It returns nil if the request has no token, or has
// not passed the middleware of t. Other Tokens also count if they accept the same tokens: with the same
// Issuer, Audience, keys, Methods, Types, AllowBound and Leeway. For example, if a request has passed
// optional and required Tokens of the same issuer, both return the claims.
func (t *Tokens) Claims(r *dunlin.Request) *Claims {
	a, _ := acceptedKey.Get(r)
	for ; a != nil; a = a.before {
		if a.by == t || a.by.trusts(t) {
			return a.claims
		}
	}
	return nil
}

// trusts reports whether t accepts exactly the tokens that other accepts.
func (t *Tokens) trusts(other *Tokens) bool {
	if t.config.Issuer != other.config.Issuer || t.config.Audience != other.config.Audience {
		return false
	}
	return reflect.DeepEqual(t.config.trust(), other.config.trust())
}

// trust returns c with only the settings that decide which tokens are accepted.
func (c *Config) trust() Config {
	return Config{Issuer: c.Issuer, Audience: c.Audience, KeySet: c.KeySet, Keys: c.Keys, Secrets: c.Secrets,
		Methods: c.Methods, Types: c.Types, AllowBound: c.AllowBound, Leeway: c.Leeway}
}

// Claim decodes a claim of a request's token into v, see [Claims.Claim].
func (t *Tokens) Claim(r *dunlin.Request, name string, v any) error {
	return t.Claims(r).Claim(name, v)
}

// Check validates a token and returns its claims. A valid token has an accepted type, a signature
// by a key of the issuer with one of Config.Methods, the issuer and the audience of Config, and a
// subject. It is not expired and not from the future. Check may wait for the issuer's keys until ctx is
// done. If the keys are unknown, the error wraps [ErrNoKeys].
func (t *Tokens) Check(ctx context.Context, token string) (*Claims, error) {
	if len(token) > longestToken {
		return nil, fmt.Errorf("auth: token is longer than %d bytes", longestToken)
	}
	claims := new(exactClaims)
	_, err := t.parser.ParseWithClaims(token, claims, func(parsed *jwt.Token) (any, error) {
		if _, critical := parsed.Header["crit"]; critical {
			return nil, errors.New("auth: token has unknown critical extensions (RFC 7515 section 4.1.11)")
		}
		if !t.accepts(parsed.Header) {
			return nil, fmt.Errorf("auth: token has the type %.40q, which is not in Config.Types", parsed.Header["typ"])
		}
		kid, _ := parsed.Header["kid"].(string)
		return t.keys.find(ctx, kid, parsed.Method.Alg())
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("auth: invalid token: %w", err)
	case claims.Subject == "":
		return nil, errors.New("auth: invalid token: it has no subject")
	case claims.members["cnf"] != nil && !t.config.AllowBound:
		return nil, errors.New("auth: invalid token: it is bound to a key of the client (claim cnf), and Config.AllowBound is not set")
	}
	return &claims.Claims, nil
}

// accepts reports whether the type in a token's header is among Types (RFC 7515 section 4.1.9).
func (t *Tokens) accepts(header map[string]any) bool {
	typ, ok := header["typ"].(string)
	if _, there := header["typ"]; there && !ok {
		return false
	}
	const prefix = "application/"
	if len(typ) > len(prefix) && strings.EqualFold(typ[:len(prefix)], prefix) {
		typ = typ[len(prefix):]
	}
	return slices.ContainsFunc(t.config.Types, func(accepted string) bool { return strings.EqualFold(accepted, typ) })
}

// exactClaims are claims that are matched by their exact names. Package encoding/json ignores case: it
// would store a claim "Sub", whose value an issuer may let its users choose, as sub.
type exactClaims struct{ Claims }

// UnmarshalJSON implements json.Unmarshaler.
func (c *exactClaims) UnmarshalJSON(text []byte) error {
	if err := json.Unmarshal(text, &c.members); err != nil {
		return err
	}
	for name, to := range map[string]any{
		"iss": &c.Issuer, "sub": &c.Subject, "aud": &c.Audience, "exp": &c.ExpiresAt, "nbf": &c.NotBefore, "iat": &c.IssuedAt, "jti": &c.ID, "scope": &c.Scope,
	} {
		if member, ok := c.members[name]; ok {
			if err := json.Unmarshal(member, to); err != nil {
				return fmt.Errorf("claim %s: %w", name, err)
			}
		}
	}
	return nil
}
