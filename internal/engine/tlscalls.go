//go:build linux

package engine

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"io"
	"time"

	"github.com/dunlinhttp/dunlin/internal/tlsmem"
)

// Functions of the application that a handshake calls may block, for example on a store of certificates, or on a service that has
// the key or checks certificates. If such a call takes long, another handshake gets the processor:
//
//	running ──▶ in a call ──(quickCall)──▶ without a processor ──(the call returns)──▶ in line to continue ──▶ running
//
// The functions are wrapped, and a wrapper must know its handshake. Some functions get the connection for which they are called
// (ClientHelloInfo.Conn). If config has other functions, each handshake gets its own config with its own wrappers. Functions that
// encrypt and decrypt session tickets are not wrapped.

// quickCall is the time for which a call keeps the processor. Most calls that do not block take less.
const quickCall = time.Millisecond

// call calls f, a function of the application. If f runs for longer than quickCall, h gives up its processor, and call waits for
// another one after f.
func (h *handshake) call(f func()) {
	s := &h.e.handshakes
	var away, over bool // under s.mu
	timer := time.AfterFunc(quickCall, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !over {
			away = true
			s.stop(h)
			s.leave(h)
		}
	})
	defer func() {
		if timer.Stop() {
			return
		}
		s.mu.Lock()
		over = true
		s.mu.Unlock()
		if away {
			s.goOn(h)
		}
	}()
	f()
}

// withAppCalls returns a copy of config whose functions of the application are wrapped, so that handshake.call calls them. If
// prompt is set, GetCertificate is not wrapped: the wrapper reads the clock, which takes about 3 % of the time of a handshake.
func withAppCalls(config *tls.Config, prompt bool) *tls.Config {
	all := config.Clone()
	callNamed(all)
	if prompt {
		all.GetCertificate = config.GetCertificate
	}
	get, bound := config.GetConfigForClient, isBound(config)
	if get == nil && !bound {
		return all
	}
	all.GetConfigForClient = func(hello *tls.ClientHelloInfo) (one *tls.Config, err error) {
		h := handshakeOf(hello)
		if get != nil {
			h.call(func() { one, err = get(hello) })
		}
		switch {
		case err != nil:
			return nil, err
		case one != nil && (one.GetCertificate != nil || isBound(one)):
			one = one.Clone()
			callNamed(one)
		case one == nil && bound:
			one = all.Clone()
		default:
			return one, nil
		}
		h.bind(one)
		return one, nil
	}
	return all
}

func handshakeOf(hello *tls.ClientHelloInfo) *handshake { return tlsmem.Of(hello.Conn).(*handshake) }

// callNamed wraps the functions in config that get the connection for which they are called.
func callNamed(config *tls.Config) {
	if get := config.GetCertificate; get != nil {
		config.GetCertificate = func(hello *tls.ClientHelloInfo) (cert *tls.Certificate, err error) {
			h := handshakeOf(hello)
			h.call(func() { cert, err = get(hello) })
			if cert != nil && isRemote(cert.PrivateKey) {
				own := *cert
				own.PrivateKey = h.key(cert.PrivateKey)
				cert = &own
			}
			return cert, err
		}
	}
	if get := config.GetEncryptedClientHelloKeys; get != nil {
		config.GetEncryptedClientHelloKeys = func(hello *tls.ClientHelloInfo) (keys []tls.EncryptedClientHelloKey, err error) {
			handshakeOf(hello).call(func() { keys, err = get(hello) })
			return keys, err
		}
	}
}

// isBound reports whether config has functions that do not get the connection, or remote keys.
func isBound(config *tls.Config) bool {
	for i := range config.Certificates {
		if isRemote(config.Certificates[i].PrivateKey) {
			return true
		}
	}
	return config.VerifyPeerCertificate != nil || config.VerifyConnection != nil
}

// bind wraps the functions and remote keys in config that do not get the connection. config belongs to h only.
func (h *handshake) bind(config *tls.Config) {
	if verify := config.VerifyPeerCertificate; verify != nil {
		config.VerifyPeerCertificate = func(raw [][]byte, chains [][]*x509.Certificate) (err error) {
			h.call(func() { err = verify(raw, chains) })
			return err
		}
	}
	if verify := config.VerifyConnection; verify != nil {
		config.VerifyConnection = func(state tls.ConnectionState) (err error) {
			h.call(func() { err = verify(state) })
			return err
		}
	}
	certs := config.Certificates
	config.Certificates = append([]tls.Certificate(nil), certs...)
	for i := range certs {
		config.Certificates[i].PrivateKey = h.key(certs[i].PrivateKey)
	}
}

// isRemote reports whether a key may be on another machine or device.
func isRemote(key crypto.PrivateKey) bool {
	switch key.(type) {
	case *rsa.PrivateKey, *ecdsa.PrivateKey, ed25519.PrivateKey:
		return false
	}
	_, ok := key.(crypto.Signer)
	return ok
}

// key wraps a remote key so that its operations run in h.call. It returns other keys unchanged.
func (h *handshake) key(key crypto.PrivateKey) crypto.PrivateKey {
	if !isRemote(key) {
		return key
	}
	sign := remoteKey{key.(crypto.Signer), h}
	if decrypt, ok := key.(crypto.Decrypter); ok {
		return &remoteDecrypter{sign, decrypt}
	}
	return &sign
}

type remoteKey struct {
	crypto.Signer
	h *handshake
}

func (k *remoteKey) Sign(rand io.Reader, digest []byte, opts crypto.SignerOpts) (signature []byte, err error) {
	k.h.call(func() { signature, err = k.Signer.Sign(rand, digest, opts) })
	return signature, err
}

// SignMessage is for keys that sign only whole messages (crypto.MessageSigner).
func (k *remoteKey) SignMessage(rand io.Reader, msg []byte, opts crypto.SignerOpts) (signature []byte, err error) {
	k.h.call(func() { signature, err = crypto.SignMessage(k.Signer, rand, msg, opts) })
	return signature, err
}

type remoteDecrypter struct {
	remoteKey
	decrypter crypto.Decrypter
}

func (k *remoteDecrypter) Decrypt(rand io.Reader, msg []byte, opts crypto.DecrypterOpts) (plain []byte, err error) {
	k.h.call(func() { plain, err = k.decrypter.Decrypt(rand, msg, opts) })
	return plain, err
}
