package acme

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/acme"
)

// A manager provides the certificates of an app.
type manager struct {
	config Config
	log    *slog.Logger
	store  *store
	names  []*name // in the order of the app's settings
	byName map[string]*name

	mu     sync.Mutex
	proofs map[string]*tls.Certificate // certificates for TLS-ALPN-01, by name
	tokens map[string]string           // responses for HTTP-01, by path

	account sync.Mutex
	client  *acme.Client // nil until the authority knows the account
}

// A name is a domain name that needs a certificate.
type name struct {
	name string
	cert atomic.Pointer[tls.Certificate] // nil for none

	// Only Renew uses these fields.
	due      time.Time // time of the next attempt
	failures int       // consecutive failures
}

func newManager(c Config, names []string, s *store, log *slog.Logger) *manager {
	m := &manager{
		config: c, log: log, store: s,
		byName: map[string]*name{}, proofs: map[string]*tls.Certificate{}, tokens: map[string]string{},
	}
	for _, n := range names {
		one := &name{name: n}
		m.names = append(m.names, one)
		m.byName[n] = one
		m.read(one)
	}
	return m
}

// read loads the stored certificate if it is valid for longer than the current one.
func (m *manager) read(n *name) {
	kept, err := m.store.load(n.name)
	if err != nil {
		m.log.Warn("the stored certificate cannot be used: a new one will be obtained", "name", n.name, "error", err.Error())
	}
	if kept == nil {
		return
	}
	if have := n.cert.Load(); have == nil || kept.Leaf.NotAfter.After(have.Leaf.NotAfter) {
		n.cert.Store(kept)
	}
}

var errNoName = errors.New("acme: no certificate for that name")

// GetCertificate returns the certificate for a handshake. For a handshake without a server name it
// returns the certificate of the first name.
func (m *manager) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	asked := strings.TrimSuffix(strings.ToLower(hello.ServerName), ".")
	if len(hello.SupportedProtos) == 1 && hello.SupportedProtos[0] == acme.ALPNProto { // RFC 8737 section 3
		m.mu.Lock()
		defer m.mu.Unlock()
		if proof := m.proofs[asked]; proof != nil {
			return proof, nil
		}
		return nil, fmt.Errorf("acme: no pending challenge for %q", asked)
	}
	n := m.names[0]
	if asked != "" {
		if n = m.byName[asked]; n == nil {
			return nil, errNoName
		}
	}
	cert := n.cert.Load()
	if cert == nil {
		return nil, fmt.Errorf("acme: there is no certificate for %s yet", n.name)
	}
	return cert, nil
}

// Protocols returns the ALPN protocol of TLS-ALPN-01 if that challenge is enabled.
func (m *manager) Protocols() []string {
	if !slices.Contains(m.config.Challenges, TLSALPN01) {
		return nil
	}
	return []string{acme.ALPNProto}
}

// Challenge returns the response to an HTTP-01 request. It reports false if there is no such challenge.
func (m *manager) Challenge(_, path string) (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	answer, ok := m.tokens[path]
	return answer, ok
}

const (
	attemptTime = 3 * time.Minute // maximum time to obtain one certificate
	atOnce      = 4               // maximum number of concurrent attempts
	firstPause  = time.Minute     // pause after the first failure; each further failure doubles the pause
	longPause   = 6 * time.Hour   // maximum pause
	look        = time.Hour       // maximum time between checks, because timers ignore clock changes and the suspension of the machine
)

// Renew obtains missing certificates, and renews certificates after two thirds of their lifetime.
// It returns when ctx is done.
func (m *manager) Renew(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if m.renewDue(ctx); ctx.Err() != nil {
			return
		}
		next := look
		for _, n := range m.names {
			next = min(next, time.Until(n.due))
		}
		timer.Reset(max(next, 0))
	}
}

// renewDue obtains the certificates whose next attempt is due.
func (m *manager) renewDue(ctx context.Context) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for _, n := range m.names {
		m.read(n) // another process may have obtained the certificate
		if due := renewal(n.cert.Load()); n.failures == 0 || time.Now().Before(due) {
			n.due, n.failures = due, 0
		}
		if time.Now().Before(n.due) {
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			m.renew(ctx, n)
		})
	}
	wg.Wait()
}

// renewal returns the time at which to renew a certificate: after two thirds of its lifetime.
func renewal(cert *tls.Certificate) time.Time {
	if cert == nil {
		return time.Time{}
	}
	from, to := cert.Leaf.NotBefore, cert.Leaf.NotAfter
	return to.Add(-to.Sub(from) / 3)
}

// renew obtains one certificate. If that fails, it schedules the next attempt.
func (m *manager) renew(ctx context.Context, n *name) {
	attempt, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	cert, err := m.obtain(attempt, n.name)
	if ctx.Err() != nil {
		return
	}
	if err == nil {
		err = m.got(n, cert)
	}
	if err != nil {
		m.failed(ctx, n, err)
	}
}

// got stores a new certificate. It returns an error if the certificate is already due for renewal.
func (m *manager) got(n *name, cert *tls.Certificate) error {
	n.cert.Store(cert)
	m.log.Info("certificate obtained", "name", n.name, "until", cert.Leaf.NotAfter)
	if err := m.store.save(n.name, cert); err != nil {
		m.log.Error("the certificate could not be stored: the next start will obtain a new one", "name", n.name, "error", err.Error())
	}
	if n.due = renewal(cert); !time.Now().Before(n.due) {
		return fmt.Errorf("acme: the new certificate, from %v until %v, is already due for renewal: check the clock", cert.Leaf.NotBefore, cert.Leaf.NotAfter)
	}
	n.failures = 0
	return nil
}

// failed logs a failure and schedules the next attempt.
func (m *manager) failed(ctx context.Context, n *name, err error) {
	n.failures++
	pause := min(firstPause<<min(n.failures-1, 12), longPause)
	pause += rand.N(pause / 4) // a random part, so that servers do not retry at the same moment
	var limited *acme.Error
	if errors.As(err, &limited) {
		if wait, ok := acme.RateLimit(limited); ok {
			pause = max(pause, wait)
		}
	}
	n.due = time.Now().Add(pause)
	level := slog.LevelError
	if have := n.cert.Load(); have != nil && time.Now().Before(have.Leaf.NotAfter) {
		level = slog.LevelWarn // the current certificate is still valid
	}
	m.log.Log(ctx, level, "obtaining a certificate failed", "name", n.name, "error", err.Error(), "again", pause.Round(time.Second).String())
}
