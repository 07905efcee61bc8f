package auth

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"slices"
	"sync"
	"time"
)

// ErrNoKeys reports that the issuer's keys are unknown because they could not be fetched.
var ErrNoKeys = errors.New("auth: the issuer's keys are unknown")

var errUnknownKey = errors.New("auth: the token names a key that the issuer does not have, or not for its method")

// A keySet has the keys of an issuer by name. Its map is never modified, only replaced.
type keySet struct {
	config *Config
	client *http.Client

	mu      sync.Mutex
	keys    map[keyName]crypto.PublicKey // nil before the first successful fetch
	fetched time.Time                    // time of the latest fetch, successful or not
	err     error                        // error of the latest fetch
	flight  chan struct{}                // closed at the end of the current fetch; nil if there is none
}

// A keyName identifies a key by the kid of a token and a method. A key for several methods has a keyName for each method. Thus two
// keys with one kid, each for another kind of signature, do not conflict (RFC 7517 section 4.5).
type keyName struct{ kid, method string }

// methodsOf returns the methods whose signatures a key can verify (RFC 7518 section 3.1, RFC 8037).
func methodsOf(key crypto.PublicKey) []string {
	switch k := key.(type) {
	case *rsa.PublicKey:
		return []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}
	case *ecdsa.PublicKey:
		switch k.Curve {
		case elliptic.P256():
			return []string{"ES256"}
		case elliptic.P384():
			return []string{"ES384"}
		case elliptic.P521():
			return []string{"ES512"}
		}
	case ed25519.PublicKey:
		return []string{"EdDSA"}
	case []byte:
		return []string{"HS256", "HS384", "HS512"}
	}
	return nil
}

func newKeySet(c *Config) *keySet {
	s := &keySet{config: c, client: securely(c.Client)}
	if c.KeySet == "" {
		s.keys = map[keyName]crypto.PublicKey{}
	}
	for kid, secret := range c.Secrets {
		for _, method := range methodsOf(secret) {
			s.keys[keyName{kid, method}] = bytes.Clone(secret)
		}
	}
	for kid, public := range c.Keys {
		for _, method := range methodsOf(public) {
			s.keys[keyName{kid, method}] = public
		}
	}
	return s
}

// find returns the key with the name kid for signatures by a method. For an unknown key it fetches
// the key set, unless the latest fetch was too recent. A known key is returned at once; once an hour
// a fetch in the background checks that the issuer still has it.
func (s *keySet) find(ctx context.Context, kid, method string) (crypto.PublicKey, error) {
	name := keyName{kid, method}
	s.mu.Lock()
	key, ok := s.keys[name]
	if s.config.KeySet != "" && s.flight == nil && time.Since(s.fetched) >= s.pause(ok) {
		s.flight = make(chan struct{})
		go s.fetch(s.flight)
	}
	flight := s.flight
	s.mu.Unlock()
	switch {
	case ok:
		return key, nil
	case s.config.KeySet == "":
		return nil, errUnknownKey
	}
	if flight != nil {
		select {
		case <-flight:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", ErrNoKeys, ctx.Err())
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if key, ok := s.keys[name]; ok {
		return key, nil
	}
	if s.keys == nil || s.err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoKeys, s.err) // the issuer may have this key
	}
	return nil, errUnknownKey
}

// pause returns the minimum time between the latest fetch and the next one, for a known or an
// unknown key. The lock must be held.
func (s *keySet) pause(known bool) time.Duration {
	if known && s.err == nil {
		return max(askAgain, s.config.MinRefresh)
	}
	return s.config.MinRefresh
}

// fetch replaces the keys by the current keys of the issuer. If it fails, the old keys remain.
func (s *keySet) fetch(flight chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), s.config.Timeout)
	defer cancel()
	keys, err := download(ctx, s.client, s.config.KeySet)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.keys = keys
	}
	s.err, s.fetched, s.flight = err, time.Now(), nil
	close(flight)
}

// largestSet is the maximum size of a key set, in bytes.
const largestSet = 1 << 20

// securely returns a client that follows no redirect from https to http, because an attacker who can modify clear text
// could then replace the keys.
func securely(client *http.Client) *http.Client {
	c := *client
	c.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		switch {
		case via[0].URL.Scheme == "https" && req.URL.Scheme != "https":
			return errors.New("redirect from https to http")
		case client.CheckRedirect != nil:
			return client.CheckRedirect(req, via)
		case len(via) >= 10: // the limit of http.Client
			return errors.New("stopped after 10 redirects")
		}
		return nil
	}
	return &c
}

func download(ctx context.Context, client *http.Client, url string) (map[keyName]crypto.PublicKey, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("fetch key set: got status %s", resp.Status)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, largestSet+1))
	if err != nil {
		return nil, err
	}
	if len(text) > largestSet {
		return nil, fmt.Errorf("key set is larger than %d bytes", largestSet)
	}
	return parseKeySet(text)
}

// A webKey is a JSON Web Key (RFC 7517) with the members of public keys (RFC 7518 section 6, RFC
// 8037).
type webKey struct {
	Kty, Kid, Use, Alg, Crv, N, E, X, Y string

	Operations []string `json:"key_ops"`
}

// parseKeySet returns the keys of a set that are supported and for signatures. It skips other keys
// and malformed keys, which do not invalidate the rest of the set (RFC 7517 section 5).
func parseKeySet(text []byte) (map[keyName]crypto.PublicKey, error) {
	var set struct{ Keys []json.RawMessage }
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, fmt.Errorf("the key set: %w", err)
	}
	keys := map[keyName]crypto.PublicKey{}
	for _, member := range set.Keys {
		var k webKey
		if err := json.Unmarshal(member, &k); err != nil || !k.checks() {
			continue
		}
		if k.Alg == "Ed25519" {
			k.Alg = "EdDSA" // the name in tokens; RFC 9864 has introduced Ed25519
		}
		key := k.public()
		for _, method := range methodsOf(key) {
			// A key with an alg is used for that method only (RFC 8725 section 3.1).
			if k.Alg == "" || k.Alg == method {
				keys[keyName{k.Kid, method}] = key
			}
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("the key set has no supported key for signatures")
	}
	return keys, nil
}

// checks reports whether a key may verify signatures according to its members use and key_ops (RFC
// 7517 sections 4.2 and 4.3).
func (k *webKey) checks() bool {
	return (k.Use == "" || k.Use == "sig") && (k.Operations == nil || slices.Contains(k.Operations, "verify"))
}

// minRSA is the minimum length of an RSA key, in bits (RFC 7518 section 3.3).
const minRSA = 2048

// checkPublic returns an error if a configured key cannot verify signatures, or is too weak.
func checkPublic(key crypto.PublicKey) error {
	switch k := key.(type) {
	case *rsa.PublicKey:
		if k == nil || k.N == nil || k.N.BitLen() < minRSA {
			return fmt.Errorf("an RSA key of less than %d bits", minRSA)
		}
		if k.E < 3 {
			return fmt.Errorf("an RSA key with the exponent %d", k.E)
		}
	case *ecdsa.PublicKey:
		//lint:ignore SA1019 no other method reports a missing point
		if k == nil || k.X == nil || k.Y == nil {
			return errors.New("no point on a curve")
		}
		if _, err := k.Bytes(); err != nil {
			return fmt.Errorf("invalid point on the curve: %w", err)
		}
		if methodsOf(k) == nil {
			return fmt.Errorf("a key on the unsupported curve %s", k.Params().Name)
		}
	case ed25519.PublicKey:
		if len(k) != ed25519.PublicKeySize {
			return fmt.Errorf("an Ed25519 key of %d bytes", len(k))
		}
	default:
		return fmt.Errorf("a %T instead of a public key of RSA, ECDSA or Ed25519", key)
	}
	return nil
}

// public returns the key, or nil if it is not supported or too weak.
func (k *webKey) public() crypto.PublicKey {
	switch k.Kty {
	case "RSA":
		n, e := number(k.N), number(k.E)
		if n == nil || e == nil || n.BitLen() < minRSA || n.BitLen() > 8*minRSA || e.BitLen() > 31 || e.Int64() < 3 {
			return nil
		}
		return &rsa.PublicKey{N: n, E: int(e.Int64())}
	case "EC":
		curve := map[string]elliptic.Curve{"P-256": elliptic.P256(), "P-384": elliptic.P384(), "P-521": elliptic.P521()}[k.Crv]
		x, y := number(k.X), number(k.Y)
		if curve == nil || x == nil || y == nil {
			return nil
		}
		size := (curve.Params().BitSize + 7) / 8
		if x.BitLen() > 8*size || y.BitLen() > 8*size {
			return nil
		}
		point := append([]byte{4}, append(x.FillBytes(make([]byte, size)), y.FillBytes(make([]byte, size))...)...)
		key, err := ecdsa.ParseUncompressedPublicKey(curve, point) // fails for a point that is not on the curve
		if err != nil {
			return nil
		}
		return key
	case "OKP":
		x, err := base64.RawURLEncoding.DecodeString(k.X)
		if k.Crv != "Ed25519" || err != nil || len(x) != ed25519.PublicKeySize {
			return nil
		}
		return ed25519.PublicKey(x)
	}
	return nil
}

func number(s string) *big.Int {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) == 0 {
		return nil
	}
	return new(big.Int).SetBytes(b)
}
