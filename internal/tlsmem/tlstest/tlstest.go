// Package tlstest contains helpers for tests of TLS: a certificate, and a client that sends records which crypto/tls
// does not send.
package tlstest

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"math/big"
	"net"
	"strings"
	"sync"
	"time"
)

// Certificate returns a certificate for 127.0.0.1 and example.test, and the pool that trusts it.
var Certificate = sync.OnceValues(func() (tls.Certificate, *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := x509.Certificate{
		SerialNumber:          big.NewInt(time.Now().UnixNano()),
		Subject:               pkix.Name{CommonName: "dunlin"},
		NotBefore:             time.Date(1999, time.January, 1, 0, 0, 0, 0, time.UTC), // before the start time of testing/synctest
		NotAfter:              time.Date(2100, time.January, 1, 0, 0, 0, 0, time.UTC),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		DNSNames:              []string{"example.test"},
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, pool
})

// Server returns settings for a server with that certificate.
func Server() *tls.Config {
	cert, _ := Certificate()
	return &tls.Config{Certificates: []tls.Certificate{cert}}
}

// Client returns settings for a client that trusts it.
func Client() *tls.Config {
	_, pool := Certificate()
	return &tls.Config{RootCAs: pool, ServerName: "example.test"}
}

// Record types of RFC 8446, section B.1.
const (
	Alert       = 21
	Handshake   = 22
	Application = 23
)

// A Raw is a client of TLS 1.3 that seals its own records after the handshake. Read the server's data from its Conn.
type Raw struct {
	*tls.Conn

	socket net.Conn
	hash   func() hash.Hash
	keyLen int
	secret []byte
	seq    uint64
}

// NewRaw performs the handshake on socket.
func NewRaw(socket net.Conn) (*Raw, error) {
	var keys bytes.Buffer
	config := Client()
	config.MinVersion, config.KeyLogWriter = tls.VersionTLS13, &keys
	r := &Raw{Conn: tls.Client(socket, config), socket: socket}
	if err := r.Handshake(); err != nil {
		return nil, err
	}
	switch r.ConnectionState().CipherSuite {
	case tls.TLS_AES_128_GCM_SHA256:
		r.hash, r.keyLen = sha256.New, 16
	case tls.TLS_AES_256_GCM_SHA384:
		r.hash, r.keyLen = sha512.New384, 32
	default:
		return nil, fmt.Errorf("tlstest: no support for cipher suite %#x", r.ConnectionState().CipherSuite)
	}
	for line := range strings.Lines(keys.String()) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "CLIENT_TRAFFIC_SECRET_0" {
			secret, err := hex.DecodeString(fields[2])
			r.secret = secret
			return r, err
		}
	}
	return nil, errors.New("tlstest: no secret was logged")
}

// expand is HKDF-Expand-Label of RFC 8446, section 7.1, without a context.
func (r *Raw) expand(label string, n int) []byte {
	label = "tls13 " + label
	info := binary.BigEndian.AppendUint16(nil, uint16(n))
	info = append(append(append(info, byte(len(label))), label...), 0)
	b, err := hkdf.Expand(r.hash, r.secret, string(info), n)
	if err != nil {
		panic(err)
	}
	return b
}

// Record returns a sealed record of a type with content and the given number of padding zeros.
func (r *Raw) Record(kind byte, content []byte, padding int) []byte {
	block, err := aes.NewCipher(r.expand("key", r.keyLen))
	if err != nil {
		panic(err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	nonce := r.expand("iv", aead.NonceSize())
	for i := range 8 {
		nonce[len(nonce)-1-i] ^= byte(r.seq >> (8 * i))
	}
	r.seq++
	inner := append(append([]byte(nil), content...), kind)
	inner = append(inner, make([]byte, padding)...)
	header := []byte{Application, 3, 3}
	header = binary.BigEndian.AppendUint16(header, uint16(len(inner)+aead.Overhead()))
	return aead.Seal(header, nonce, inner, header)
}

// KeyUpdate returns the record that updates the client's keys. With request it asks the server for the same.
func (r *Raw) KeyUpdate(request bool) []byte {
	message := []byte{24, 0, 0, 1, 0}
	if request {
		message[4] = 1
	}
	b := r.Record(Handshake, message, 0)
	r.secret, r.seq = r.expand("traffic upd", r.hash().Size()), 0
	return b
}

// Send writes sealed records.
func (r *Raw) Send(records ...[]byte) error {
	_, err := r.socket.Write(bytes.Join(records, nil))
	return err
}

// Wire returns the connection that carries the records.
func (r *Raw) Socket() net.Conn { return r.socket }
