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

// LoginConfig names the provider, and says what becomes of the session of who has logged in. The zero value
// of a field stands for its default; those of the first two groups must be given, except for ClientSecret.
type LoginConfig[T any] struct {
	// Issuer is the provider, as its discovery document and its tokens name it: https://id.example.com.
	Issuer string

	// ClientID and ClientSecret are what the provider knows this service by; a public client has no secret.
	ClientID, ClientSecret string

	// SecretInBody has the secret sent in the body of requests, for a provider that does not take it in the Authorization field although it says
	// so, or says nothing of it.
	SecretInBody bool

	// Callback is the absolute URL of Finish, as it is registered with the provider: https://shop.example.com/login/callback. No URL is made of
	// what a request says its host is.
	Callback string

	// Sessions has the session that a login is kept in. Its middleware must stand in front of Finish and Logout.
	Sessions *middleware.Sessions[T]

	// SignIn changes the session to that of who has logged in; its error ends the login and is the answer. It is what
	// [middleware.Sessions.Login] calls: several times, if others change the session meanwhile, and the session has another name then.
	SignIn func(r *dunlin.Request, session *T, who *Identity) error

	// Keys seal what the browser keeps of a login that has begun.
	Keys *middleware.KeyRing

	// Scopes are asked for beside openid: profile, email, offline_access.
	Scopes []string

	// Params are further parameters of the request to the provider: prompt, ui_locales, acr_values.
	Params map[string]string

	// Home is the local path to go to after a login that named none, and after a logout. Default: /
	Home string

	// AfterLogout has the provider send the browser back to Home after it has logged out there, too. Home's URL, at the host of
	// Callback, must be registered with the provider as one for that (post_logout_redirect_uri).
	AfterLogout bool

	// Hint returns the ID token of a session that keeps it ([Identity].IDToken), for the provider to know who logs out; without it
	// it asks them. Default: none.
	Hint func(session *T) string

	// Within is how long somebody has to log in at the provider. Default: 10 minutes.
	Within time.Duration

	// Timeout bounds each call of the provider. Default: 5 s.
	Timeout time.Duration
	Client  *http.Client // Default: http.DefaultClient

	// Insecure lets Issuer, Callback and the cookies of a login go without TLS: for development.
	Insecure bool
}

// Identity is who has logged in, as the provider says.
type Identity struct {
	// Issuer and Subject are who it is: the pair never changes, as names and addresses of mail do.
	Issuer, Subject string

	IDToken string        // as it came
	Token   *oauth2.Token // for the provider's interfaces

	id *oidc.IDToken
}

// Claim decodes a claim of the ID token into v, by its exact name, see [Claims.Claim]. It fails for an identity that comes from a session and
// not from the provider.
func (i *Identity) Claim(name string, v any) error {
	var c Claims
	if err := i.Claims(&c.members); err != nil {
		return err
	}
	return c.Claim(name, v)
}

// Claims decodes the claims of the ID token into v, as encoding/json does. A struct takes a claim whose name differs in capital
// letters alone: where the provider lets its users choose names of claims, use [Identity.Claim]. It fails for an identity that
// comes from a session and not from the provider.
func (i *Identity) Claims(v any) error {
	if i.id == nil {
		return errors.New("auth: Claims: no ID token was looked at")
	}
	return i.id.Claims(v)
}

// Login has people log in at a provider of OpenID Connect, by the authorization code flow with PKCE (OpenID Connect Core 1.0, section 3.1; RFC 6749,
// RFC 7636, RFC 9700). Its three actions belong on routes of the app; Finish on that of Callback:
//
//	login := auth.NewLogin(auth.LoginConfig[visit]{ ... })
//	app.Get("/login", login.Begin)
//	app.Get("/login/callback", login.Finish)
//	app.Post("/logout", login.Logout)
//
// It is safe for any number of goroutines.
type Login[T any] struct {
	config   LoginConfig[T]
	callback *url.URL
	flows    flows
	provider provider

	refreshes refreshes
}

// reserved are the parameters that no other value may be given.
var reserved = []string{"client_id", "redirect_uri", "response_type", "response_mode", "scope", "state", "nonce", "code_challenge", "code_challenge_method", "request", "request_uri"}

// NewLogin returns the actions of a login. It does not ask the provider: that is done when somebody logs in
// first. It panics when a setting is not valid.
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
		return nil, errors.New("LoginConfig.Sessions, SignIn and Keys must be given: who has logged in is kept in a session, and what has begun is sealed")
	case c.Within < 0 || c.Timeout < 0:
		return nil, fmt.Errorf("LoginConfig.Within and Timeout (%v, %v) must not be negative", c.Within, c.Timeout)
	case localPath(c.Home, "") == "":
		return nil, fmt.Errorf("LoginConfig.Home is %q: it must be a path of this host", c.Home)
	}
	for name := range c.Params {
		if slices.Contains(reserved, name) {
			return nil, fmt.Errorf("LoginConfig.Params has %s, which is not for it to say", name)
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

// Begin sends the browser to the provider, with a cookie to which the end of the login is bound. The query
// parameter "to" names the path of this host, with a query, to go to after the login: up to 512 bytes. A
// value that is not such a path is ignored.
func (l *Login[T]) Begin(r *dunlin.Request) dunlin.Response {
	p, err := l.provider.get(r.Context())
	if err != nil {
		return unreachable(err)
	}
	to := localPath(r.Query("to"), l.config.Home)
	if u, err := url.Parse(to); err == nil && (u.Path == r.Path() || u.Path == l.callback.Path) {
		to = l.config.Home // and not round in circles, or where no login ends any more
	}
	f := l.flows.begin(r, to)
	options := []oauth2.AuthCodeOption{oidc.Nonce(f.nonce()), oauth2.S256ChallengeOption(f.verifier())}
	for name, value := range l.config.Params {
		options = append(options, oauth2.SetAuthURLParam(name, value))
	}
	return dunlin.Redirect(p.oauth.AuthCodeURL(f.state(), options...)).Cookie(l.flows.cookie(f)).Header("Cache-Control", "no-store")
}

// Finish is where the provider sends the browser back to: it gets who has logged in, and begins their session under a new name.
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
		return unreachable(err) // the code may not have been used: the login can still be ended, when the provider answers
	case err != nil:
		resp = dunlin.Error(err)
	}
	return resp.Cookie(l.flows.gone(f)).Header("Cache-Control", "no-store") // a login ends once
}

// finish returns who the provider says it is.
func (l *Login[T]) finish(r *dunlin.Request, f *flow) (*Identity, error) {
	ctx, cancel := context.WithTimeout(oidc.ClientContext(r.Context(), l.provider.client), l.config.Timeout)
	defer cancel()
	p, err := l.provider.get(ctx)
	if err != nil {
		return nil, err
	}
	// Whose answer it is comes first: that of another provider is nothing to this one (RFC 9207 section 2.4).
	if iss := r.Query("iss"); iss != l.config.Issuer && (p.saysIssuer || r.HasQuery("iss")) {
		return nil, &dunlin.ProblemDetails{Status: http.StatusBadRequest, Detail: "the answer is not that of the provider that was asked"}
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
		return nil, &dunlin.ProblemDetails{Status: http.StatusBadGateway, Detail: "what the provider says of the login does not hold", Cause: err}
	}
	return who, err
}

// longestCode bounds an authorization code, in bytes.
const longestCode = 4 << 10

// refusal is the problem of a provider that lets nobody in (RFC 6749 section 4.1.2.1).
func refusal(code, description string) error {
	p := &dunlin.ProblemDetails{Status: http.StatusBadRequest, Detail: "the provider has refused the login", Cause: fmt.Errorf("auth: the provider says %.100q: %.300q", code, description)}
	switch code {
	case "access_denied":
		p.Status = http.StatusForbidden
	case "server_error", "temporarily_unavailable":
		p.Status, p.Detail = http.StatusServiceUnavailable, "the provider cannot let anybody in for the moment"
	}
	return p
}

// exchangeError is the problem of a code that got no token.
func exchangeError(err error) error {
	refused, ok := errors.AsType[*oauth2.RetrieveError](err)
	switch {
	case !ok || refused.Response != nil && refused.Response.StatusCode >= 500:
		return fmt.Errorf("%w: %w", errUnreachable, err)
	case refused.ErrorCode == "invalid_grant":
		return &dunlin.ProblemDetails{Status: http.StatusBadRequest, Detail: "the provider does not take the code: it was used before, or is too old. Log in again", Cause: err}
	}
	return &dunlin.ProblemDetails{Status: http.StatusBadGateway, Detail: "the provider does not know this service as it should", Cause: err}
}

func unreachable(err error) dunlin.Response {
	return dunlin.Problem(dunlin.ProblemDetails{Status: http.StatusServiceUnavailable, Detail: "nobody can log in at the moment: the provider does not answer", Cause: err}).
		Header("Retry-After", "5").Header("Cache-Control", "no-store")
}

// Logout ends the session, and sends the browser to the provider to log out there, too, where it offers that (OpenID Connect RP-Initiated
// Logout 1.0), else to Home. It takes POST alone: a link or an image of another site must not log anybody out.
func (l *Login[T]) Logout(r *dunlin.Request) dunlin.Response {
	if r.Method() != http.MethodPost {
		return dunlin.Problem(dunlin.ProblemDetails{Status: http.StatusMethodNotAllowed, Detail: "a logout is a POST"}).Header("Allow", "POST")
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
