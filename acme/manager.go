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

// A manager has the certificates of an app.
type manager struct {
	config Config
	log    *slog.Logger
	store  *store
	names  []*name // in the app's order
	byName map[string]*name

	mu     sync.Mutex
	proofs map[string]*tls.Certificate // of TLS-ALPN-01, by name
	tokens map[string]string           // of HTTP-01, by path

	account sync.Mutex
	client  *acme.Client // nil until the authority knows the account
}

// A name is one that is to have a certificate.
type name struct {
	name string
	cert atomic.Pointer[tls.Certificate] // nil if there is none

	// Of Renew:
	due      time.Time // when the next attempt is
	failures int       // in a row
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

// read takes what is kept, if that lasts longer than what there is.
func (m *manager) read(n *name) {
	kept, err := m.store.load(n.name)
	if err != nil {
		m.log.Warn("a certificate that was kept cannot be used: there will be another", "name", n.name, "error", err.Error())
	}
	if kept == nil {
		return
	}
	if have := n.cert.Load(); have == nil || kept.Leaf.NotAfter.After(have.Leaf.NotAfter) {
		n.cert.Store(kept)
	}
}

var errNoName = errors.New("acme: no certificate for that name")

// GetCertificate chooses the certificate for a handshake; without a name that of the first one.
func (m *manager) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	asked := strings.TrimSuffix(strings.ToLower(hello.ServerName), ".")
	if len(hello.SupportedProtos) == 1 && hello.SupportedProtos[0] == acme.ALPNProto { // RFC 8737 section 3
		m.mu.Lock()
		defer m.mu.Unlock()
		if proof := m.proofs[asked]; proof != nil {
			return proof, nil
		}
		return nil, fmt.Errorf("acme: nothing to prove for %q", asked)
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

// Protocols returns that of TLS-ALPN-01.
func (m *manager) Protocols() []string {
	if !slices.Contains(m.config.Challenges, TLSALPN01) {
		return nil
	}
	return []string{acme.ALPNProto}
}

// Challenge returns the answer to HTTP-01.
func (m *manager) Challenge(_, path string) (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	answer, ok := m.tokens[path]
	return answer, ok
}

const (
	attemptTime = 3 * time.Minute // for one certificate
	atOnce      = 4               // so many are asked for
	firstPause  = time.Minute     // after a failure; twice as long after each other one
	longPause   = 6 * time.Hour   // at most
	look        = time.Hour       // clocks are set, and machines sleep: timers do not notice
)

// Renew gets certificates for the names that have none, and others when two thirds of their time have passed.
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

// renewDue gets the certificates that are due.
func (m *manager) renewDue(ctx context.Context) {
	var wg sync.WaitGroup
	places := make(chan struct{}, atOnce)
	for _, n := range m.names {
		m.read(n) // another process may have got it, while this one failed for one
		if due := renewal(n.cert.Load()); n.failures == 0 || time.Now().Before(due) {
			n.due, n.failures = due, 0
		}
		if time.Now().Before(n.due) {
			continue
		}
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			m.renew(ctx, n)
		})
	}
	wg.Wait()
}

// renewal returns when a certificate is to be renewed.
func renewal(cert *tls.Certificate) time.Time {
	if cert == nil {
		return time.Time{}
	}
	from, to := cert.Leaf.NotBefore, cert.Leaf.NotAfter
	return to.Add(-to.Sub(from) / 3)
}

// renew gets one certificate, and notes when to try again if that fails.
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

// got takes a new certificate. It is an error if that is to be renewed at once.
func (m *manager) got(n *name, cert *tls.Certificate) error {
	n.cert.Store(cert)
	m.log.Info("certificate got", "name", n.name, "until", cert.Leaf.NotAfter)
	if err := m.store.save(n.name, cert); err != nil {
		m.log.Error("a certificate could not be kept: the next start will ask for another", "name", n.name, "error", err.Error())
	}
	if n.due = renewal(cert); !time.Now().Before(n.due) {
		return fmt.Errorf("acme: the new certificate, from %v until %v, is to be renewed already: is the clock right?", cert.Leaf.NotBefore, cert.Leaf.NotAfter)
	}
	n.failures = 0
	return nil
}

// failed notes when to try again.
func (m *manager) failed(ctx context.Context, n *name, err error) {
	n.failures++
	pause := min(firstPause<<min(n.failures-1, 12), longPause)
	pause += rand.N(pause / 4) // so that all the world does not come back at once
	var limited *acme.Error
	if errors.As(err, &limited) {
		if wait, ok := acme.RateLimit(limited); ok {
			pause = max(pause, wait)
		}
	}
	n.due = time.Now().Add(pause)
	level := slog.LevelError
	if have := n.cert.Load(); have != nil && time.Now().Before(have.Leaf.NotAfter) {
		level = slog.LevelWarn // nobody has noticed yet
	}
	m.log.Log(ctx, level, "no certificate was got", "name", n.name, "error", err.Error(), "again", pause.Round(time.Second).String())
}
