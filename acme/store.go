package acme

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// A store is a folder:
//
//	account.key      the key of the account
//	example.com.pem  the key and the certificate chain of a name
//
// Files are replaced atomically, so that readers never see a partial file.
type store struct{ folder string }

// accountFile cannot be the file of a name, because these files end with ".pem".
const accountFile = "account.key"

func openStore(folder string) (*store, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("acme: folder for certificates: %w", err)
	}
	return &store{folder}, nil
}

// account returns the account's key. It creates and stores the key if there is none.
func (s *store) account() (crypto.Signer, error) {
	name := filepath.Join(s.folder, accountFile)
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, err
		}
		return key, s.write(accountFile, key, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("acme: key of the account: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("acme: key of the account: %s is not a PEM file", name)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("acme: key of the account: %s: %w", name, err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("acme: key of the account: %s contains a %T, which cannot sign", name, key)
	}
	return signer, nil
}

// load returns the stored certificate of a name, or nil if there is none.
func (s *store) load(name string) (*tls.Certificate, error) {
	file := filepath.Join(s.folder, name+".pem")
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("acme: read certificate: %w", err)
	}
	cert, err := tls.X509KeyPair(text, text)
	if err != nil {
		return nil, fmt.Errorf("acme: read certificate: %s: %w", file, err)
	}
	return complete(cert, name)
}

// complete returns cert with its leaf parsed. It returns an error if the leaf is not for the name.
func complete(cert tls.Certificate, name string) (*tls.Certificate, error) {
	if len(cert.Certificate) == 0 {
		return nil, errors.New("acme: the response of the authority has no certificate")
	}
	leaf, err := x509.ParseCertificate(cert.Certificate[0])
	if err != nil {
		return nil, fmt.Errorf("acme: certificate for %s: %w", name, err)
	}
	if err := leaf.VerifyHostname(name); err != nil {
		return nil, fmt.Errorf("acme: certificate for %s: %w", name, err)
	}
	cert.Leaf = leaf
	return &cert, nil
}

// save stores the certificate of a name.
func (s *store) save(name string, cert *tls.Certificate) error {
	return s.write(name+".pem", cert.PrivateKey, cert.Certificate)
}

// write replaces a file. The new file has a key and certificates.
func (s *store) write(file string, key crypto.PrivateKey, certs [][]byte) error {
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("acme: %w", err)
	}
	var text bytes.Buffer
	blocks := []*pem.Block{{Type: "PRIVATE KEY", Bytes: private}}
	for _, der := range certs {
		blocks = append(blocks, &pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
	for _, b := range blocks {
		if err := pem.Encode(&text, b); err != nil {
			return fmt.Errorf("acme: %w", err)
		}
	}
	f, err := os.CreateTemp(s.folder, ".new-*") // CreateTemp gives access to the owner only
	if err != nil {
		return fmt.Errorf("acme: save %s: %w", file, err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(text.Bytes())
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(s.folder, file))
	}
	if err != nil {
		return fmt.Errorf("acme: save %s: %w", file, err)
	}
	return nil
}
