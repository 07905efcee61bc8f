//go:build linux

package engine_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"runtime"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/tlsmem/tlstest"
)

// A remote key is used on another machine, which takes as long as wait.
type remote struct {
	crypto.Signer
	wait func()
}

func (k remote) Sign(r io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	k.wait()
	return k.Signer.Sign(r, digest, opts)
}

// A remoteRSA also decrypts, for suites of TLS 1.2 without a signature.
type remoteRSA struct{ remote }

func (k remoteRSA) Decrypt(r io.Reader, msg []byte, opts crypto.DecrypterOpts) ([]byte, error) {
	k.wait()
	return k.Signer.(crypto.Decrypter).Decrypt(r, msg, opts)
}

// A remoteMessage signs only whole messages.
type remoteMessage struct{ remote }

func (k remoteMessage) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) {
	return nil, errors.New("a digest is no message")
}

func (k remoteMessage) SignMessage(r io.Reader, msg []byte, opts crypto.SignerOpts) ([]byte, error) {
	k.wait()
	return crypto.SignMessage(k.Signer, r, msg, opts)
}

// Handshakes that wait for the application have no processor meanwhile, and continue afterwards.
func TestTLSHandshakeWaitsForCallback(t *testing.T) {
	keep := func(config *tls.Config) func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return func(*tls.ClientHelloInfo) (*tls.Config, error) { return config, nil }
	}
	cert := func() tls.Certificate { return tlstest.Server().Certificates[0] }
	signed := func(key func(remote) crypto.PrivateKey, wait func()) tls.Certificate {
		c := cert()
		c.PrivateKey = key(remote{c.PrivateKey.(crypto.Signer), wait})
		return c
	}
	digest := func(k remote) crypto.PrivateKey { return k }
	message := func(k remote) crypto.PrivateKey { return remoteMessage{k} }
	for _, c := range []struct {
		name string
		set  func(config *tls.Config, wait func())
	}{
		{"GetCertificate", func(config *tls.Config, wait func()) {
			config.Certificates, config.GetCertificate = nil, func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
				wait()
				c := cert()
				return &c, nil
			}
		}},
		{"the key of GetCertificate", func(config *tls.Config, wait func()) {
			config.Certificates, config.GetCertificate = nil, func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
				c := signed(digest, wait)
				return &c, nil
			}
		}},
		{"GetConfigForClient", func(config *tls.Config, wait func()) {
			config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { wait(); return nil, nil }
		}},
		{"GetCertificate of GetConfigForClient", func(config *tls.Config, wait func()) {
			config.GetConfigForClient = keep(&tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
				wait()
				c := cert()
				return &c, nil
			}})
		}},
		{"GetEncryptedClientHelloKeys", func(config *tls.Config, wait func()) {
			config.MaxVersion = tls.VersionTLS13 // whose clients send the extension, or pretend to
			config.GetEncryptedClientHelloKeys = func(*tls.ClientHelloInfo) ([]tls.EncryptedClientHelloKey, error) { wait(); return nil, nil }
		}},
		{"VerifyPeerCertificate", func(config *tls.Config, wait func()) {
			config.ClientAuth = tls.RequireAnyClientCert
			config.VerifyPeerCertificate = func([][]byte, [][]*x509.Certificate) error { wait(); return nil }
		}},
		{"VerifyConnection", func(config *tls.Config, wait func()) {
			config.VerifyConnection = func(tls.ConnectionState) error { wait(); return nil }
		}},
		{"VerifyConnection of GetConfigForClient", func(config *tls.Config, wait func()) {
			own := tlstest.Server()
			own.VerifyConnection = func(tls.ConnectionState) error { wait(); return nil }
			config.GetConfigForClient = keep(own)
		}},
		{"VerifyConnection beside GetConfigForClient", func(config *tls.Config, wait func()) {
			config.GetConfigForClient = keep(nil)
			config.VerifyConnection = func(tls.ConnectionState) error { wait(); return nil }
		}},
		{"a key", func(config *tls.Config, wait func()) { config.Certificates[0] = signed(digest, wait) }},
		{"a key for messages", func(config *tls.Config, wait func()) { config.Certificates[0] = signed(message, wait) }},
		{"a key that decrypts", func(config *tls.Config, wait func()) {
			key, err := rsa.GenerateKey(rand.Reader, 2048)
			if err != nil {
				t.Fatal(err)
			}
			template := x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"example.test"}, NotAfter: time.Now().Add(time.Hour)}
			der, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
			if err != nil {
				t.Fatal(err)
			}
			config.Certificates = []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: remoteRSA{remote{key, wait}}}}
			config.MaxVersion, config.CipherSuites = tls.VersionTLS12, []uint16{tls.TLS_RSA_WITH_AES_128_GCM_SHA256}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			onTLSVersions(t, func(t *testing.T, client *tls.Config) {
				waits, goOn := make(chan bool), make(chan bool)
				config := tlstest.Server()
				c.set(config, func() { waits <- true; <-goOn })
				if config.MaxVersion != 0 {
					client.MinVersion, client.MaxVersion = config.MaxVersion, config.MaxVersion
				}
				client.Certificates, client.CipherSuites, client.InsecureSkipVerify = []tls.Certificate{cert()}, config.CipherSuites, true
				s := serveTLS(t, engine.Config{Loops: 1}, &engine.TLS{Config: config}, newLineHandler())
				go func() {
					<-waits
					for limit := time.Now().Add(20 * time.Second); s.HandshakesRunning() > 0; runtime.Gosched() {
						if time.Now().After(limit) {
							t.Error("a handshake that computes nothing keeps its processor")
							break
						}
					}
					close(goOn)
				}()
				conn := s.dialTLS(client)
				conn.send("echo a\n")
				conn.want("a")
				if n := s.HandshakesRunning(); n != 0 {
					t.Errorf("%d handshakes have a processor after the last one", n)
				}
			})
		})
	}
}

// Code of the application that returns at once, or panics, leaves no state.
func TestTLSHandshakeCallbackPanics(t *testing.T) {
	for _, late := range []bool{false, true} {
		var s *server
		config := tlstest.Server()
		config.VerifyConnection = func(state tls.ConnectionState) error {
			if state.ServerName != "panic.test" {
				return nil
			}
			for late && s.HandshakesRunning() > 0 {
				runtime.Gosched()
			}
			panic("as the test wants it")
		}
		s = serveTLS(t, engine.Config{Loops: 1, Logger: slog.New(slog.DiscardHandler)}, &engine.TLS{Config: config}, newLineHandler())
		client := tlstest.Client()
		client.ServerName, client.MaxVersion = "panic.test", tls.VersionTLS12
		if err := tls.Client(s.dial().Conn, client).Handshake(); err == nil {
			t.Error("a handshake whose application has panicked succeeds")
		}
		conn := s.dialTLS(nil)
		conn.send("echo a\n")
		conn.want("a")
		eventually(t, "no handshake has a processor", func() bool { return s.HandshakesRunning() == 0 })
	}
}
