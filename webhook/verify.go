package webhook

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dunlinhttp/dunlin/store"
)

// Config has the settings of a Verifier.
type Config struct {
	// Secrets are the keys of the sender: shared secrets ("whsec_" and base64, or only base64) and public keys of Ed25519
	// ("whpk_" and base64). A signature by any of these keys is accepted. To rotate keys, add the new key first, and remove
	// the old key when the sender no longer uses it. At least one key must be set.
	Secrets []string

	// Tolerance is the maximum difference between webhook-timestamp and the clock, in both
	// directions. Default: 5 minutes.
	Tolerance time.Duration

	// Store remembers the IDs of webhooks, so that the action runs once for each. Default: IDs are not remembered; then the
	// sender, or an attacker who has copied a webhook, can repeat it within Tolerance.
	Store store.Store

	// Prefix is the beginning of the keys in the store. Endpoints with different senders need
	// different prefixes. Default: "webhook:".
	Prefix string

	// Remember is the time for which an ID is remembered, at least twice Tolerance. Senders repeat webhooks for hours or
	// days. Default: 24 hours.
	Remember time.Duration

	// Lease is the maximum duration of an action. After this time a repetition runs the action again, since the first
	// process may have ended. Default: 1 minute.
	Lease time.Duration

	// Now returns the current time. Default: time.Now.
	Now func() time.Time
}

// Verify returns these errors.
var (
	ErrMalformed = errors.New("webhook: headers are missing or malformed")
	ErrExpired   = errors.New("webhook: the timestamp is too far from the clock")
	ErrSignature = errors.New("webhook: no signature by a known key")
)

// A Verifier verifies the webhooks of a sender. It is safe for concurrent use.
type Verifier struct {
	config  Config
	shared  [][]byte
	publics []ed25519.PublicKey
}

// New returns a verifier. It panics without a key, and for an invalid setting.
func New(c Config) *Verifier {
	v := &Verifier{}
	if len(c.Secrets) == 0 {
		panic("webhook: New: there is no secret")
	}
	for i, text := range c.Secrets {
		k, err := parseKey(text)
		if err != nil {
			panic(fmt.Sprintf("webhook: New: secret %d: %v", i, err)) // the error does not contain the secret
		}
		switch {
		case k.public != nil:
			v.publics = append(v.publics, k.public)
		case k.private != nil:
			panic(fmt.Sprintf("webhook: New: secret %d is the private key of a sender: use the public key", i))
		default:
			v.shared = append(v.shared, k.shared)
		}
	}
	for _, d := range []struct {
		name     string
		setting  *time.Duration
		standard time.Duration
	}{
		{"Tolerance", &c.Tolerance, 5 * time.Minute},
		{"Remember", &c.Remember, 24 * time.Hour},
		{"Lease", &c.Lease, time.Minute},
	} {
		if *d.setting < 0 {
			panic(fmt.Sprintf("webhook: New: %s is negative", d.name))
		}
		if *d.setting == 0 {
			*d.setting = d.standard
		}
	}
	if c.Remember < 2*c.Tolerance {
		panic("webhook: New: Remember is shorter than twice the Tolerance, in which a webhook can be repeated")
	}
	if c.Prefix == "" {
		c.Prefix = "webhook:"
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	v.config = c
	return v
}

// A key is a shared secret, a public key or a private key. The other fields are nil.
type key struct {
	shared  []byte
	public  ed25519.PublicKey
	private ed25519.PrivateKey
}

const minSecret = 16 // minimum length in bytes; the specification recommends 24 to 64

// parseKey parses the text of a key by its prefix.
func parseKey(text string) (k key, err error) {
	kind, encoded, found := strings.Cut(text, "_")
	if !found {
		kind, encoded = "whsec", text
	}
	b, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return k, errors.New("it is not base64 after its prefix")
	}
	switch {
	case kind == "whsec" && len(b) >= minSecret:
		k.shared = b
	case kind == "whsec":
		return k, fmt.Errorf("it has %d bytes, fewer than %d", len(b), minSecret)
	case kind == "whpk" && len(b) == ed25519.PublicKeySize:
		k.public = b
	case kind == "whsk" && len(b) == ed25519.SeedSize:
		k.private = ed25519.NewKeyFromSeed(b)
	case kind == "whsk" && len(b) == ed25519.PrivateKeySize:
		k.private = b
	default:
		return k, errors.New("it is neither whsec_, whpk_ nor whsk_ with a key of the right length")
	}
	return k, nil
}

const (
	maxID         = 256 // maximum length of webhook-id, in bytes
	maxSignatures = 16  // maximum number of compared signatures; further ones are ignored
)

// Verify verifies a webhook from the values of its three headers and its body, as received. The
// error is ErrMalformed, ErrExpired or ErrSignature. Verify does not use the store. An ID with a
// full stop is malformed, because the signed text has a full stop after the ID.
func (v *Verifier) Verify(id, timestamp, signatures string, body []byte) error {
	if id == "" || len(id) > maxID || strings.Contains(id, ".") || signatures == "" {
		return ErrMalformed
	}
	seconds, err := strconv.ParseUint(timestamp, 10, 40) // digits only
	if err != nil {
		return ErrMalformed
	}
	if d := v.config.Now().Sub(time.Unix(int64(seconds), 0)); d > v.config.Tolerance || d < -v.config.Tolerance {
		return ErrExpired
	}
	if !v.signed(id, timestamp, signatures, body) {
		return ErrSignature
	}
	return nil
}

// signed reports whether one of the signatures is by one of the keys.
func (v *Verifier) signed(id, timestamp, signatures string, body []byte) bool {
	var macs [][]byte // the MAC by each shared secret
	var content []byte
	var buf [base64Room]byte
	n := 0
	for one := range strings.SplitSeq(signatures, " ") {
		if n++; n > maxSignatures {
			return false
		}
		version, encoded, _ := strings.Cut(one, ",")
		if len(encoded) > len(buf) {
			continue
		}
		size, err := base64.StdEncoding.Decode(buf[:], []byte(encoded))
		if err != nil {
			continue
		}
		switch version {
		case "v1":
			if macs == nil {
				macs = make([][]byte, len(v.shared))
				for i, secret := range v.shared {
					macs[i] = mac(secret, id, timestamp, body)
				}
			}
			for _, want := range macs {
				if hmac.Equal(buf[:size], want) {
					return true
				}
			}
		case "v1a":
			if content == nil {
				content = signedContent(id, timestamp, body)
			}
			for _, public := range v.publics {
				if size == ed25519.SignatureSize && ed25519.Verify(public, content, buf[:size]) {
					return true
				}
			}
		}
	}
	return false
}

// base64Room is the length of an Ed25519 signature in base64. HMAC signatures are shorter.
const base64Room = (ed25519.SignatureSize + 2) / 3 * 4

// mac returns the HMAC-SHA256 of a webhook.
func mac(secret []byte, id, timestamp string, body []byte) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(id + "." + timestamp + "."))
	h.Write(body)
	return h.Sum(nil)
}

// signedContent returns the text that is signed.
func signedContent(id, timestamp string, body []byte) []byte {
	b := make([]byte, 0, len(id)+len(timestamp)+len(body)+2)
	b = append(append(b, id...), '.')
	b = append(append(b, timestamp...), '.')
	return append(b, body...)
}
