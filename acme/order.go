package acme

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"golang.org/x/crypto/acme"
)

// obtain obtains a certificate for a name, by the first challenge that succeeds.
func (m *manager) obtain(ctx context.Context, name string) (*tls.Certificate, error) {
	client, err := m.registered(ctx)
	if err != nil {
		return nil, err
	}
	var failed error
	for _, kind := range m.config.Challenges {
		order, err := m.order(ctx, client, name, kind)
		if err == nil {
			return finish(ctx, client, order, name)
		}
		failed = errors.Join(failed, fmt.Errorf("%s: %w", kind, err))
		var e *acme.AuthorizationError
		if !errors.As(err, &e) && !errors.Is(err, errNotOffered) {
			break // another challenge would fail for the same reason
		}
	}
	m.account.Lock()
	m.client = nil // the account may be invalid, so the next attempt registers it again
	m.account.Unlock()
	return nil, failed
}

// registered returns a client with a registered account.
func (m *manager) registered(ctx context.Context) (*acme.Client, error) {
	m.account.Lock()
	defer m.account.Unlock()
	if m.client != nil {
		return m.client, nil
	}
	key, err := m.store.account()
	if err != nil {
		return nil, err
	}
	client := &acme.Client{Key: key, DirectoryURL: m.config.Directory, HTTPClient: m.config.Client, UserAgent: "dunlin"}
	account := new(acme.Account)
	if m.config.Email != "" {
		account.Contact = []string{"mailto:" + m.config.Email}
	}
	if e := m.config.ExternalAccount; e != nil {
		account.ExternalAccountBinding = &acme.ExternalAccountBinding{KID: e.KeyID, Key: e.Key}
	}
	if _, err := client.Register(ctx, account, acme.AcceptTOS); err != nil && !errors.Is(err, acme.ErrAccountAlreadyExists) {
		return nil, fmt.Errorf("register with %s: %w", m.config.Directory, err)
	}
	m.client = client
	return client, nil
}

// order creates an order, and proves control of the name by a challenge.
func (m *manager) order(ctx context.Context, client *acme.Client, name, kind string) (*acme.Order, error) {
	order, err := client.AuthorizeOrder(ctx, acme.DomainIDs(name))
	if err != nil {
		return nil, err
	}
	for _, url := range order.AuthzURLs {
		authorization, err := client.GetAuthorization(ctx, url)
		if err != nil {
			return nil, err
		}
		if authorization.Status == acme.StatusValid { // still valid from an earlier order
			continue
		}
		if err := m.prove(ctx, client, authorization, name, kind); err != nil {
			return nil, err
		}
	}
	ready, err := client.WaitOrder(ctx, order.URI)
	if err == nil {
		ready.URI = order.URI // the responses of some authorities do not contain it
	}
	return ready, err
}

var errNotOffered = errors.New("the authority does not offer it")

// prove completes a challenge of the given kind.
func (m *manager) prove(ctx context.Context, client *acme.Client, a *acme.Authorization, name, kind string) error {
	for _, c := range a.Challenges {
		if c.Type != kind {
			continue
		}
		withdraw, err := m.show(client, c, name)
		if err != nil {
			return err
		}
		defer withdraw()
		if _, err := client.Accept(ctx, c); err != nil {
			return err
		}
		_, err = client.WaitAuthorization(ctx, a.URI)
		return err
	}
	return errNotOffered
}

// show makes the app serve the response to a challenge until withdraw is called.
func (m *manager) show(client *acme.Client, c *acme.Challenge, name string) (withdraw func(), err error) {
	if c.Type == HTTP01 {
		answer, err := client.HTTP01ChallengeResponse(c.Token)
		if err != nil {
			return nil, err
		}
		path := client.HTTP01ChallengePath(c.Token)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.tokens[path] = answer
		return func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			delete(m.tokens, path)
		}, nil
	}
	proof, err := client.TLSALPN01ChallengeCert(c.Token, name)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.proofs[name] = &proof
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.proofs, name)
	}, nil
}

// finish obtains the certificate of an order whose challenges are complete.
func finish(ctx context.Context, client *acme.Client, order *acme.Order, name string) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: []string{name}}, key)
	if err != nil {
		return nil, err
	}
	chain, _, err := client.CreateCertFromOrder(ctx, order, request, true)
	if err != nil {
		return nil, fmt.Errorf("finish the order: %w", err)
	}
	return complete(tls.Certificate{Certificate: chain, PrivateKey: key}, name)
}
