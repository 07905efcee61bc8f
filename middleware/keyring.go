package middleware

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// A KeyRing seals and signs values that clients store, such as cookies. A client cannot read a sealed
// value, and cannot change a sealed or signed value. The first key seals and signs; all keys open and
// verify. To rotate keys, put a new key first, and remove the last key when no value made with it is in
// use. A KeyRing is safe for concurrent use.
type KeyRing struct{ keys []ringKey }

type ringKey struct {
	id     [4]byte // identifies the key in sealed values
	secret []byte
}

// minKey is the minimum length of a secret, in bytes.
const minKey = 16

// NewKeyRing returns a ring of secrets. Each secret must have at least 16 random bytes; use 32. It panics
// without a secret, and for a secret that is empty (an environment variable that is not set), too short
// or repeated.
func NewKeyRing(secrets ...[]byte) *KeyRing {
	if len(secrets) == 0 {
		panic("middleware: NewKeyRing: no secrets")
	}
	k := new(KeyRing)
	for i, secret := range secrets {
		if len(secret) == 0 {
			panic(fmt.Sprintf("middleware: NewKeyRing: secret %d is empty: if an environment variable has it, set that to random text, such as that of openssl rand -hex 32", i))
		}
		if len(secret) < minKey {
			panic(fmt.Sprintf("middleware: NewKeyRing: secret %d has %d bytes: it must have at least %d", i, len(secret), minKey))
		}
		sum := sha256.Sum256(append([]byte("dunlin key ring\x00"), secret...))
		key := ringKey{[4]byte(sum[:4]), bytes.Clone(secret)}
		for n, other := range k.keys {
			if other.id == key.id {
				panic(fmt.Sprintf("middleware: NewKeyRing: secrets %d and %d are the same", n, i))
			}
		}
		k.keys = append(k.keys, key)
	}
	return k
}

// ErrForged reports that a value given to Open or Verify was not made with a key of the ring for this
// purpose, or was changed.
var ErrForged = errors.New("middleware: verify value: not signed by a key of this ring, or modified")

// A sealed value, before its encoding in base64:
//
//	version (1) │ key (4) │ salt (24) │ ciphertext │ tag (16)
//
// HKDF-SHA256 derives the key and the nonce of AES-256-GCM from the secret and the salt. So one secret
// can seal any number of values. With random nonces alone a nonce would repeat after about 2^32 values.
const (
	sealVersion = 1
	saltSize    = 24
	sealHead    = 1 + 4 + saltSize
	gcmTag      = 16
)

var inBase64 = base64.RawURLEncoding.Strict() // each value has one encoding

// Seal encrypts plain with AES-256-GCM, and returns it as text that a cookie may contain. The length of
// the text is 4/3 of that of plain, plus 60 bytes. Only Open with the same purpose, such as the name of
// the cookie, decrypts it.
func (k *KeyRing) Seal(purpose string, plain []byte) string {
	b := make([]byte, sealHead, sealHead+len(plain)+gcmTag)
	b[0] = sealVersion
	copy(b[1:], k.keys[0].id[:])
	_, _ = rand.Read(b[5:sealHead]) // never fails
	aead, nonce := k.keys[0].aead(b[5:sealHead], purpose)
	b = aead.Seal(b, nonce, plain, b[:sealHead])
	return inBase64.EncodeToString(b)
}

// Open returns the value that Seal has sealed, or ErrForged.
func (k *KeyRing) Open(purpose, sealed string) ([]byte, error) {
	b, err := inBase64.DecodeString(sealed)
	if err != nil || len(b) < sealHead+gcmTag || b[0] != sealVersion {
		return nil, ErrForged
	}
	key := k.find([4]byte(b[1:5]))
	if key == nil {
		return nil, ErrForged
	}
	aead, nonce := key.aead(b[5:sealHead], purpose)
	plain, err := aead.Open(nil, nonce, b[sealHead:], b[:sealHead])
	if err != nil {
		return nil, ErrForged
	}
	return plain, nil
}

func (k *KeyRing) find(id [4]byte) *ringKey {
	for i := range k.keys {
		if k.keys[i].id == id {
			return &k.keys[i]
		}
	}
	return nil
}

// aead returns cipher and nonce for a salt.
func (k *ringKey) aead(salt []byte, purpose string) (cipher.AEAD, []byte) {
	const keySize, nonceSize = 32, 12
	derived, err := hkdf.Key(sha256.New, k.secret, salt, "dunlin seal\x00"+purpose, keySize+nonceSize)
	if err == nil {
		var block cipher.Block
		if block, err = aes.NewCipher(derived[:keySize]); err == nil {
			var aead cipher.AEAD
			if aead, err = cipher.NewGCM(block); err == nil {
				return aead, derived[keySize:]
			}
		}
	}
	panic("middleware: KeyRing: " + err.Error()) // all sizes are constants
}

// Sign returns value, unencrypted, followed by a dot and its HMAC-SHA256 signature.
func (k *KeyRing) Sign(purpose, value string) string {
	return value + "." + k.keys[0].signature(purpose, value)
}

// Verify returns the value that Sign has signed, or ErrForged.
func (k *KeyRing) Verify(purpose, signed string) (string, error) {
	dot := strings.LastIndexByte(signed, '.')
	if dot < 0 {
		return "", ErrForged
	}
	value, signature := signed[:dot], []byte(signed[dot+1:])
	for i := range k.keys {
		if hmac.Equal(signature, []byte(k.keys[i].signature(purpose, value))) {
			return value, nil
		}
	}
	return "", ErrForged
}

func (k *ringKey) signature(purpose, value string) string {
	h := hmac.New(sha256.New, k.secret)
	_, _ = fmt.Fprintf(h, "dunlin sign 2\x00%d\x00%s%s", len(purpose), purpose, value) // the length makes the text unambiguous
	return inBase64.EncodeToString(h.Sum(nil))
}
