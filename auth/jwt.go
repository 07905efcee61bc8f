// Package auth authenticates requests: by JSON Web Tokens of a trusted issuer (RFC 7519, RFC 6750), see
// [Tokens], and by logins at a provider of OpenID Connect, see [Login]. It is a module of its own, on
// golang-jwt, go-oidc and golang.org/x/oauth2.
//
//	tokens := auth.NewTokens(auth.Config{Issuer: "https://id.example.com", Audience: "shop", KeySet: "https://id.example.com/jwks"})
//	api := app.Group("/api", tokens.Middleware())
//
//	jwt.go       what a token must say, the middleware
//	keyset.go    the issuer's keys, fetched and rotated
//	login.go     the actions of a login
//	flow.go      what the browser keeps of a login that has begun
//	refresh.go   access tokens that are renewed
//	provider.go  what the provider says of itself, and of who has logged in
package auth

import (
	"context"
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/dunlinhttp/dunlin"
)

// Config says whose tokens are accepted. The zero value of a field stands for its default; Issuer, Audience
// and one of KeySet and Keys must be given.
type Config struct {
	Issuer   string // must be the claim iss
	Audience string // must be among the claim aud

	// KeySet is the URL of the issuer's JSON Web Key Set (RFC 7517). It is fetched when a token names an
	// unknown key, by one request at a time and at most once in MinRefresh, so that made-up names cost
	// nothing; and once an hour in the background, to notice keys that the issuer has withdrawn.
	KeySet     string
	MinRefresh time.Duration // Default: 30 s
	Timeout    time.Duration // of a fetch. Default: 5 s
	Client     *http.Client  // Default: http.DefaultClient

	// Keys are public keys by their names (kid), instead of KeySet: *rsa.PublicKey of 2048 bits at least, *ecdsa.PublicKey and ed25519.PublicKey.
	Keys map[string]crypto.PublicKey

	// Methods are the accepted signature algorithms. Only those with public keys can be: "none" and HMAC
	// never are. Default: RS256, ES256 and EdDSA.
	Methods []string

	// Leeway is by how much clocks may differ. Default: 30 s.
	Leeway time.Duration
}

// Claims are what a token says.
type Claims struct {
	jwt.RegisteredClaims

	Scope string `json:"scope,omitempty"` // words with spaces between (RFC 8693)
}

// HasScope reports whether the scope has a word.
func (c *Claims) HasScope(scope string) bool { return slices.Contains(strings.Fields(c.Scope), scope) }

// Tokens checks tokens. It is safe for any number of goroutines.
type Tokens struct {
	config Config
	parser *jwt.Parser
	keys   *keySet
	key    *dunlin.Key[*Claims]
}

var known = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// NewTokens returns what checks tokens by c. It panics when a setting is not valid.
func NewTokens(c Config) *Tokens {
	if c.Methods == nil {
		c.Methods = []string{"RS256", "ES256", "EdDSA"}
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
	return &Tokens{
		config: c,
		parser: jwt.NewParser(jwt.WithValidMethods(c.Methods), jwt.WithIssuer(c.Issuer), jwt.WithAudience(c.Audience),
			jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithLeeway(c.Leeway), jwt.WithStrictDecoding()),
		keys: newKeySet(&c),
		key:  dunlin.NewKey[*Claims]("claims"),
	}
}

func (c *Config) validate() error {
	switch {
	case c.Issuer == "" || c.Audience == "":
		return errors.New("Config.Issuer and Audience must be given: a token of anybody, or for anybody, proves nothing")
	case (c.KeySet == "") == (c.Keys == nil):
		return errors.New("Config.KeySet or Keys must be given, and not both")
	case c.Leeway < 0 || c.MinRefresh < 0 || c.Timeout < 0:
		return fmt.Errorf("Config.Leeway, MinRefresh and Timeout (%v, %v, %v) must not be negative", c.Leeway, c.MinRefresh, c.Timeout)
	}
	if u, err := url.Parse(c.KeySet); c.KeySet != "" && (err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "") {
		return fmt.Errorf("Config.KeySet is %q, which is no absolute URL of https or http", c.KeySet)
	}
	for _, m := range c.Methods {
		if !slices.Contains(known, m) {
			return fmt.Errorf("Config.Methods has %q, which is none of %s", m, strings.Join(known, ", "))
		}
	}
	for name, key := range c.Keys {
		if err := checkPublic(key); err != nil {
			return fmt.Errorf("Config.Keys has %q, which is %w", name, err)
		}
	}
	return nil
}

// longestToken bounds a token, in bytes.
const longestToken = 16 << 10

// Middleware answers 401 to requests without a valid token in the Authorization field (scheme Bearer), and
// 503 while the issuer's keys are not known. What is wrong with a token is logged, and not told to the
// client.
func (t *Tokens) Middleware() dunlin.Middleware {
	return func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			scheme, token, _ := strings.Cut(r.HeaderList("Authorization"), " ")
			if !strings.EqualFold(scheme, "Bearer") || token == "" {
				return refuse("Bearer", nil)
			}
			claims, err := t.Check(r.Context(), strings.Trim(token, " "))
			if errors.Is(err, ErrNoKeys) {
				return dunlin.Problem(dunlin.ProblemDetails{Status: http.StatusServiceUnavailable, Detail: "tokens cannot be checked at the moment", Cause: err}).
					Header("Retry-After", "5")
			}
			if err != nil {
				return refuse(`Bearer error="invalid_token"`, err)
			}
			t.key.Set(r, claims)
			return next(r)
		}
	}
}

func refuse(challenge string, cause error) dunlin.Response {
	return dunlin.Problem(dunlin.ProblemDetails{Status: http.StatusUnauthorized, Detail: "a valid token is needed", Cause: cause}).
		Header("WWW-Authenticate", challenge)
}

// Claims returns what the token of a request says; nil for requests that have not passed the middleware.
func (t *Tokens) Claims(r *dunlin.Request) *Claims {
	claims, _ := t.key.Get(r)
	return claims
}

// Check returns what a token says, if it is valid: signed by a key of the issuer with one of the Methods, for
// this audience, not expired, and not from the future.
func (t *Tokens) Check(ctx context.Context, token string) (*Claims, error) {
	if len(token) > longestToken {
		return nil, fmt.Errorf("auth: the token is longer than %d bytes", longestToken)
	}
	claims := new(wireClaims)
	_, err := t.parser.ParseWithClaims(token, claims, func(parsed *jwt.Token) (any, error) {
		if _, critical := parsed.Header["crit"]; critical {
			return nil, errors.New("auth: the token has critical extensions, of which none are known (RFC 7515 section 4.1.11)")
		}
		kid, _ := parsed.Header["kid"].(string)
		return t.keys.find(ctx, kid, parsed.Method.Alg())
	})
	if err != nil {
		return nil, fmt.Errorf("auth: the token does not hold: %w", err)
	}
	return &claims.Claims, nil
}

// wireClaims are read by their exact names. Package encoding/json would take a claim "Sub", which an issuer may let its users choose, for sub.
type wireClaims struct{ Claims }

// UnmarshalJSON is json.Unmarshaler's.
func (c *wireClaims) UnmarshalJSON(text []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return err
	}
	for name, to := range map[string]any{
		"iss": &c.Issuer, "sub": &c.Subject, "aud": &c.Audience, "exp": &c.ExpiresAt, "nbf": &c.NotBefore, "iat": &c.IssuedAt, "jti": &c.ID, "scope": &c.Scope,
	} {
		if member, ok := members[name]; ok {
			if err := json.Unmarshal(member, to); err != nil {
				return fmt.Errorf("claim %s: %w", name, err)
			}
		}
	}
	return nil
}
