package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// errUnreachable reports that the provider did not respond, or sent an invalid response.
var errUnreachable = errors.New("auth: cannot reach the provider")

// A provider caches the metadata of an OpenID Connect provider. It fetches them at the first use, by one
// request at a time. The first use after an hour starts another fetch in the background. A successful
// fetch also drops the cached keys, so that withdrawn keys are no longer accepted.
type provider struct {
	issuer   string
	timeout  time.Duration
	insecure bool
	inBody   bool // send the client's credentials in the body
	client   *http.Client
	oauth    oauth2.Config // without endpoints

	mu     sync.Mutex
	known  *metadata // nil before the first success
	asked  time.Time // time of the latest attempt
	err    error     // error of the latest attempt
	flight chan struct{}
}

const (
	askAgain = time.Hour   // time until the next fetch after a success
	tryAgain = time.Second // time until the next fetch after a failure
)

// metadata is the configuration that a provider publishes (OpenID Connect Discovery 1.0,
// RP-Initiated Logout 1.0, RFC 9207). It is immutable.
type metadata struct {
	issuer      string
	oauth       oauth2.Config
	verifier    *oidc.IDTokenVerifier
	endSession  string // "" for none
	sendsIssuer bool   // its authorization responses have a parameter iss
}

// get returns the metadata of the provider. It fetches them first if necessary.
func (p *provider) get(ctx context.Context) (*metadata, error) {
	p.mu.Lock()
	known, wait := p.known, tryAgain
	if p.err == nil {
		wait = askAgain
	}
	if p.flight == nil && (p.asked.IsZero() || time.Since(p.asked) >= wait) {
		p.flight = make(chan struct{})
		go p.ask(p.flight)
	}
	flight, err := p.flight, p.err
	p.mu.Unlock()
	if known != nil {
		return known, nil
	}
	if flight == nil {
		return nil, fmt.Errorf("%w: %w", errUnreachable, err)
	}
	select {
	case <-flight:
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", errUnreachable, ctx.Err())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil {
		return nil, fmt.Errorf("%w: %w", errUnreachable, p.err)
	}
	return p.known, nil
}

func (p *provider) ask(flight chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), p.timeout)
	defer cancel()
	known, err := p.discover(oidc.ClientContext(ctx, p.client))
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.known = known // after an error the old metadata remain
	}
	p.err, p.asked, p.flight = err, time.Now(), nil
	close(flight)
}

func (p *provider) discover(ctx context.Context) (*metadata, error) {
	found, err := oidc.NewProvider(ctx, p.issuer) // NewProvider compares the issuer
	if err != nil {
		return nil, err
	}
	var more struct {
		KeySet      string   `json:"jwks_uri"`
		EndSession  string   `json:"end_session_endpoint"`
		SendsIssuer bool     `json:"authorization_response_iss_parameter_supported"`
		Auth        []string `json:"token_endpoint_auth_methods_supported"`
		Challenges  []string `json:"code_challenge_methods_supported"`
	}
	if err := found.Claims(&more); err != nil {
		return nil, fmt.Errorf("the discovery document: %w", err)
	}
	m := &metadata{issuer: p.issuer, oauth: p.oauth, endSession: more.EndSession, sendsIssuer: more.SendsIssuer}
	m.oauth.Endpoint = found.Endpoint()
	m.oauth.Endpoint.AuthStyle = oauth2.AuthStyleInHeader // the default of RFC 8414; a failed attempt with one style would use up the code
	if p.inBody || len(more.Auth) > 0 && !slices.Contains(more.Auth, "client_secret_basic") && slices.Contains(more.Auth, "client_secret_post") {
		m.oauth.Endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	m.verifier = found.VerifierContext(ctx, &oidc.Config{ClientID: p.oauth.ClientID})
	if len(more.Challenges) > 0 && !slices.Contains(more.Challenges, "S256") {
		return nil, errors.New("the discovery document: provider does not support PKCE method S256 (RFC 7636)")
	}
	for name, value := range map[string]string{
		"authorization_endpoint": m.oauth.Endpoint.AuthURL, "token_endpoint": m.oauth.Endpoint.TokenURL, "jwks_uri": more.KeySet, "end_session_endpoint": m.endSession,
	} {
		if name == "end_session_endpoint" && value == "" {
			continue
		}
		if _, err := endpoint(value, p.insecure); err != nil {
			return nil, fmt.Errorf("the discovery document: %s: %w", name, err)
		}
	}
	return m, nil
}

// futureLeeway is the tolerance for tokens that seem to come from the future.
const futureLeeway = 5 * time.Minute

// identity returns the identity in a token response if its ID token is valid for this client and
// this login (OpenID Connect Core 1.0, section 3.1.3.7). nonce is "" for a refreshed token, because a
// refresh has no nonce.
func (m *metadata) identity(ctx context.Context, token *oauth2.Token, client, nonce string) (*Identity, error) {
	text, _ := token.Extra("id_token").(string)
	if text == "" || len(text) > longestToken {
		return nil, fmt.Errorf("auth: token response has no ID token, or the ID token is longer than %d bytes", longestToken)
	}
	id, err := m.verifier.Verify(ctx, text) // signature, iss, aud, exp, nbf
	if err != nil {
		// The library reports a failure to fetch the keys in the error text only.
		if strings.Contains(err.Error(), "fetching keys ") || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			return nil, fmt.Errorf("%w: %w", errUnreachable, err)
		}
		return nil, fmt.Errorf("auth: invalid ID token: %w", err)
	}
	var more struct {
		Party string `json:"azp"`
	}
	err = id.Claims(&more)
	if err == nil {
		err = onlyExact(id)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("auth: the ID token: %w", err)
	case nonce != "" && id.Nonce != nonce:
		return nil, errors.New("auth: ID token nonce does not match this login")
	case id.Subject == "":
		return nil, errors.New("auth: the ID token has no subject")
	case more.Party != "" && more.Party != client, more.Party == "" && len(id.Audience) > 1:
		return nil, fmt.Errorf("auth: the ID token is for %q and was issued to %q", id.Audience, more.Party)
	case id.IssuedAt.After(time.Now().Add(futureLeeway)):
		return nil, fmt.Errorf("auth: the ID token was issued in the future, at %v", id.IssuedAt)
	}
	if id.AccessTokenHash != "" {
		if err := id.VerifyAccessToken(token.AccessToken); err != nil {
			return nil, fmt.Errorf("auth: the access token does not match the ID token: %w", err)
		}
	}
	return &Identity{Issuer: m.issuer, Subject: id.Subject, IDToken: text, Token: token, id: id}, nil
}

// onlyExact returns an error if an ID token has a claim whose name differs only in case from the name
// of a checked claim. A provider may let users choose such a claim, and package encoding/json would use
// its value as the checked claim.
func onlyExact(id *oidc.IDToken) error {
	var members map[string]json.RawMessage
	if err := id.Claims(&members); err != nil {
		return err
	}
	for name := range members {
		for _, checked := range []string{"iss", "sub", "aud", "exp", "nbf", "iat", "nonce", "azp", "at_hash", "_claim_names", "_claim_sources"} {
			if name != checked && strings.EqualFold(name, checked) {
				return fmt.Errorf("claim %.40q differs from %s in case only", name, checked)
			}
		}
	}
	return nil
}

// endpoint parses a URL of the provider. The URL must be absolute, use TLS unless insecure is set, and
// have a host, no user and no fragment.
func endpoint(text string, insecure bool) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, err
	case u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
		return nil, fmt.Errorf("%q is not an absolute https URL", text)
	case u.Scheme == "http" && !insecure:
		return nil, fmt.Errorf("%q does not use https, and LoginConfig.Insecure is not set", text)
	case u.Fragment != "" || u.User != nil:
		return nil, fmt.Errorf("%q has a fragment or a user", text)
	}
	return u, nil
}

// largestAnswer is the maximum size of a response of the provider, in bytes.
const largestAnswer = 1 << 20

// boundedClient returns a client for calls of the provider. It limits the time of a call to timeout
// and the size of a response to largestAnswer. It sends no secret to the target of a redirect.
func boundedClient(client *http.Client, timeout time.Duration) *http.Client {
	c := *client
	if c.Timeout == 0 || c.Timeout > timeout {
		c.Timeout = timeout
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	transport := c.Transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	c.Transport = boundedTransport{transport}
	return &c
}

type boundedTransport struct{ next http.RoundTripper }

func (t boundedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if err == nil {
		resp.Body = http.MaxBytesReader(nil, resp.Body, largestAnswer)
	}
	return resp, err
}
