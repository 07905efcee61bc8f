package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
)

// LoginConfig describes the provider and the effects of a login on the session. Issuer, ClientID, Callback, Sessions, SignIn
// and Keys must be set. Any other zero field selects its documented default.
type LoginConfig[T any] struct {
	// Issuer is the provider's issuer identifier, as in its discovery document and its tokens:
	// https://id.example.com.
	Issuer string

	// ClientID and ClientSecret are the credentials of this service at the provider. A public
	// client has no secret.
	ClientID, ClientSecret string

	// SecretInBody sends the secret in the body of requests, for a provider that does not accept the
	// secret in the Authorization field, but whose discovery document does not say so.
	SecretInBody bool

	// Callback is the absolute URL of Finish, as registered with the provider:
	// https://shop.example.com/login/callback. No URL is ever derived from the Host of a request.
	Callback string

	// Sessions stores the session of a login. Its middleware must wrap Finish and Logout.
	Sessions *middleware.Sessions[T]

	// SignIn updates the session for the identity that has logged in. Its error ends the login and is
	// answered. [middleware.Sessions.Login] calls SignIn, several times if other requests change the
	// session at the same time, and gives the session a new name.
	SignIn func(r *dunlin.Request, session *T, who *Identity) error

	// Keys seal the cookies of logins in progress.
	Keys *middleware.KeyRing

	// Scopes are requested in addition to openid, such as profile, email or offline_access. Default: none.
	Scopes []string

	// Params are additional parameters of the authorization request, such as prompt, ui_locales or
	// acr_values. Default: none.
	Params map[string]string

	// Home is the local path to which the browser is redirected after a logout, and after a login whose
	// Begin had no path. Default: /
	Home string

	// AfterLogout makes the provider redirect the browser to Home after the logout at the provider. The
	// URL of Home at the host of Callback must be registered with the provider as a
	// post_logout_redirect_uri. Default: the browser stays at the provider.
	AfterLogout bool

	// Hint returns the ID token stored in a session ([Identity].IDToken), by which the provider identifies the session to
	// end. Without it the provider asks the user. Default: none.
	Hint func(session *T) string

	// Within limits the time to sign in at the provider. Default: 10 minutes.
	Within time.Duration

	// Timeout limits each call of the provider. Default: 5 s.
	Timeout time.Duration
	Client  *http.Client // Default: http.DefaultClient

	// Insecure permits Issuer, Callback and the cookies of a login without TLS, for development.
	Insecure bool
}

// Identity is an authenticated user, as the provider describes it.
type Identity struct {
	// Issuer and Subject identify the user. The pair never changes, unlike names and email
	// addresses.
	Issuer, Subject string

	IDToken string        // the encoded ID token
	Token   *oauth2.Token // tokens for the provider's APIs

	id *oidc.IDToken
}

// Claim decodes a claim of the ID token into v by its exact name, see [Claims.Claim]. It fails if the
// identity was read from a session: only an identity from the provider has claims.
func (i *Identity) Claim(name string, v any) error {
	var c Claims
	if err := i.Claims(&c.members); err != nil {
		return err
	}
	return c.Claim(name, v)
}

// Claims decodes the claims of the ID token into v, like encoding/json. A struct field also accepts
// a claim whose name differs only in case. If the provider lets its users choose claim names, use
// [Identity.Claim]. Claims fails if the identity was read from a session: only an identity from the
// provider has claims.
func (i *Identity) Claims(v any) error {
	if i.id == nil {
		return errors.New("auth: Claims: the identity has no ID token")
	}
	return i.id.Claims(v)
}

// Login provides login at an OpenID Connect provider, by the authorization code flow with PKCE
// (OpenID Connect Core 1.0, section 3.1; RFC 6749, RFC 7636, RFC 9700). Register its three actions
// on routes of the app, and Finish on the route of Callback:
//
//	login := auth.NewLogin(auth.LoginConfig[visit]{ ... })
//	app.Get("/login", login.Begin)
//	app.Get("/login/callback", login.Finish)
//	app.Post("/logout", login.Logout)
//
// It is safe for concurrent use.
type Login[T any] struct {
	config   LoginConfig[T]
	callback *url.URL
	flows    flows
	provider provider

	refreshes refreshes
}

// reserved lists the parameters that Params must not set.
var reserved = []string{"client_id", "redirect_uri", "response_type", "response_mode", "scope", "state", "nonce", "code_challenge", "code_challenge_method", "request", "request_uri"}

// NewLogin returns a Login with the given settings. It does not contact the provider: the first login
// does. It panics for an invalid setting.
func NewLogin[T any](c LoginConfig[T]) *Login[T] {
	if c.Home == "" {
		c.Home = "/"
	}
	if c.Within == 0 {
		c.Within = 10 * time.Minute
	}
	if c.Timeout == 0 {
		c.Timeout = 5 * time.Second
	}
	if c.Client == nil {
		c.Client = http.DefaultClient
	}
	c.Scopes = append([]string{oidc.ScopeOpenID}, slices.DeleteFunc(slices.Clone(c.Scopes), func(s string) bool { return s == oidc.ScopeOpenID })...)
	callback, err := c.validate()
	if err != nil {
		panic("auth: " + err.Error())
	}
	c.Home = localPath(c.Home, "")
	return &Login[T]{
		config: c, callback: callback,
		flows: newFlows(c.Keys, c.Issuer, c.ClientID, c.Within, callback.Scheme == "http"),
		provider: provider{
			issuer: c.Issuer, timeout: c.Timeout, insecure: c.Insecure, inBody: c.SecretInBody || c.ClientSecret == "", client: boundedClient(c.Client, c.Timeout),
			oauth: oauth2.Config{ClientID: c.ClientID, ClientSecret: c.ClientSecret, RedirectURL: c.Callback, Scopes: c.Scopes},
		},
	}
}

func (c *LoginConfig[T]) validate() (callback *url.URL, err error) {
	switch {
	case c.Issuer == "" || c.ClientID == "" || c.Callback == "":
		return nil, errors.New("LoginConfig.Issuer, ClientID and Callback must be given")
	case c.Sessions == nil || c.SignIn == nil || c.Keys == nil:
		return nil, errors.New("LoginConfig.Sessions, SignIn and Keys must be set: the login is stored in a session, and its state is sealed")
	case c.Within < 0 || c.Timeout < 0:
		return nil, fmt.Errorf("LoginConfig.Within and Timeout (%v, %v) must not be negative", c.Within, c.Timeout)
	case localPath(c.Home, "") == "":
		return nil, fmt.Errorf("LoginConfig.Home is %q: it must be a path of this host", c.Home)
	}
	for name := range c.Params {
		if slices.Contains(reserved, name) {
			return nil, fmt.Errorf("LoginConfig.Params has %s, which Login sets itself", name)
		}
	}
	issuer, err := endpoint(c.Issuer, c.Insecure)
	if err != nil {
		return nil, fmt.Errorf("LoginConfig.Issuer: %w", err)
	}
	if issuer.RawQuery != "" || strings.Contains(c.Issuer, "?") {
		return nil, fmt.Errorf("LoginConfig.Issuer is %q: an issuer has no query", c.Issuer)
	}
	if callback, err = endpoint(c.Callback, c.Insecure); err != nil {
		return nil, fmt.Errorf("LoginConfig.Callback: %w", err)
	}
	return callback, nil
}

// Begin redirects the browser to the provider, and sets a cookie, so that only this browser can finish
// the login. The query parameter "to" is the local path, with or without a query, to which the browser
// is redirected after the login. A value that is not a local path, or longer than 512 bytes, is ignored.
func (l *Login[T]) Begin(r *dunlin.Request) dunlin.Response {
	p, err := l.provider.get(r.Context())
	if err != nil {
		return unreachable(err)
	}
	to := localPath(r.Query("to"), l.config.Home)
	if u, err := url.Parse(to); err == nil && (u.Path == r.Path() || u.Path == l.callback.Path) {
		to = l.config.Home // a redirect to the login or to the callback would repeat the login
	}
	f := l.flows.begin(r, to)
	options := []oauth2.AuthCodeOption{oidc.Nonce(f.nonce()), oauth2.S256ChallengeOption(f.verifier())}
	for name, value := range l.config.Params {
		options = append(options, oauth2.SetAuthURLParam(name, value))
	}
	return dunlin.Redirect(p.oauth.AuthCodeURL(f.state(), options...)).Cookie(l.flows.cookie(f)).Header("Cache-Control", "no-store")
}

// Finish handles the redirect back from the provider. It obtains the identity from the provider,
// and begins the user's session under a new name.
func (l *Login[T]) Finish(r *dunlin.Request) dunlin.Response {
	f, err := l.flows.find(r)
	if err != nil {
		return dunlin.Error(err).Header("Cache-Control", "no-store")
	}
	resp := dunlin.Redirect(f.To)
	who, err := l.finish(r, f)
	if err == nil {
		err = l.config.Sessions.Login(r, func(session *T) error { return l.config.SignIn(r, session, who) })
	}
	switch {
	case errors.Is(err, errUnreachable):
		return unreachable(err) // the browser keeps the cookie, because the code may be unused and the login may still be finished
	case err != nil:
		resp = dunlin.Error(err)
	}
	return resp.Cookie(l.flows.gone(f)).Header("Cache-Control", "no-store") // a login can be finished only once
}

// finish exchanges the code of the request for tokens, and returns the identity in them.
func (l *Login[T]) finish(r *dunlin.Request, f *flow) (*Identity, error) {
	ctx, cancel := context.WithTimeout(oidc.ClientContext(r.Context(), l.provider.client), l.config.Timeout)
	defer cancel()
	p, err := l.provider.get(ctx)
	if err != nil {
		return nil, err
	}
	// The issuer is checked first, since a response of another provider must not be processed (RFC
	// 9207 section 2.4).
	if iss := r.Query("iss"); iss != l.config.Issuer && (p.sendsIssuer || r.HasQuery("iss")) {
		return nil, &dunlin.ProblemDetails{Status: http.StatusBadRequest, Detail: "the response does not come from the provider of this login"}
	}
	if code := r.Query("error"); code != "" {
		return nil, refusal(code, r.Query("error_description"))
	}
	code := r.Query("code")
	if code == "" || len(code) > longestCode {
		return nil, &dunlin.ProblemDetails{Status: http.StatusBadRequest, Detail: "the provider has sent no code"}
	}
	token, err := p.oauth.Exchange(ctx, code, oauth2.VerifierOption(f.verifier()))
	if err != nil {
		return nil, exchangeError(err)
	}
	who, err := p.identity(ctx, token, l.config.ClientID, f.nonce())
	if err != nil && !errors.Is(err, errUnreachable) {
		return nil, &dunlin.ProblemDetails{Status: http.StatusBadGateway, Detail: "the provider's answer about the login is invalid", Cause: err}
	}
	return who, err
}

// longestCode is the maximum length of an authorization code, in bytes.
const longestCode = 4 << 10

// refusal returns the problem for an error response of the provider (RFC 6749 section 4.1.2.1).
func refusal(code, description string) error {
	p := &dunlin.ProblemDetails{Status: http.StatusBadRequest, Detail: "the provider has refused the login", Cause: fmt.Errorf("auth: provider returned error %.100q: %.300q", code, description)}
	switch code {
	case "access_denied":
		p.Status = http.StatusForbidden
	case "server_error", "temporarily_unavailable":
		p.Status, p.Detail = http.StatusServiceUnavailable, "the provider is temporarily unable to log in users"
	}
	return p
}

// exchangeError returns the problem for a failed exchange of a code for tokens.
func exchangeError(err error) error {
	refused, ok := errors.AsType[*oauth2.RetrieveError](err)
	switch {
	case !ok || refused.Response != nil && refused.Response.StatusCode >= 500:
		return fmt.Errorf("%w: %w", errUnreachable, err)
	case refused.ErrorCode == "invalid_grant":
		return &dunlin.ProblemDetails{Status: http.StatusBadRequest, Detail: "the provider refused the code: it was used before, or has expired. Log in again", Cause: err}
	}
	return &dunlin.ProblemDetails{Status: http.StatusBadGateway, Detail: "the provider refused the credentials of this service", Cause: err}
}

func unreachable(err error) dunlin.Response {
	return dunlin.Problem(&dunlin.ProblemDetails{Status: http.StatusServiceUnavailable, Detail: "login is unavailable: the provider does not answer", Cause: err}).
		Header("Retry-After", "5").Header("Cache-Control", "no-store")
}

// Logout ends the session. If the provider supports it (OpenID Connect RP-Initiated Logout 1.0), Logout
// redirects the browser to the provider to log out there, too, and otherwise to Home. It accepts only
// POST, so that a link or an image on another site cannot log users out.
func (l *Login[T]) Logout(r *dunlin.Request) dunlin.Response {
	if r.Method() != http.MethodPost {
		return dunlin.Problem(&dunlin.ProblemDetails{Status: http.StatusMethodNotAllowed, Detail: "a logout is a POST"}).Header("Allow", "POST")
	}
	session, there, err := l.config.Sessions.Get(r)
	if err == nil {
		err = l.config.Sessions.End(r)
	}
	if err != nil {
		return dunlin.Error(err)
	}
	resp := dunlin.Redirect(l.config.Home)
	if p, err := l.provider.get(r.Context()); there && err == nil && p.endSession != "" {
		query := url.Values{"client_id": {l.config.ClientID}}
		if l.config.Hint != nil {
			if token := l.config.Hint(&session); token != "" {
				query.Set("id_token_hint", token)
			}
		}
		if l.config.AfterLogout {
			query.Set("post_logout_redirect_uri", l.callback.Scheme+"://"+l.callback.Host+l.config.Home)
		}
		separator := "?"
		if strings.Contains(p.endSession, "?") {
			separator = "&"
		}
		resp = dunlin.Redirect(p.endSession + separator + query.Encode())
	}
	return resp.Header("Cache-Control", "no-store")
}
