// Package certfile has a TLS certificate that is stored in two files and is read again
// when they change.
package certfile

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// A Pair is a certificate and its key, in two PEM files. Handshakes check whether the files have changed, at most once a second,
// so no timer and no goroutine is needed. Safe for concurrent use.
type Pair struct {
	certFile, keyFile string
	log               *slog.Logger
	cert              atomic.Pointer[tls.Certificate] // never nil

	checking sync.Mutex // held by the handshake that checks the files
	checked  time.Time
	seen     [2]os.FileInfo // state of the files at the last attempt to read them
}

// recheck is the minimum time between two checks of the files.
const recheck = time.Second

// Load reads the files for the first time.
func Load(certFile, keyFile string, log *slog.Logger) (*Pair, error) {
	f := &Pair{certFile: certFile, keyFile: keyFile, log: log, checked: time.Now()}
	info, err := f.stat()
	if err != nil {
		return nil, err
	}
	f.seen = info
	return f, f.load()
}

// Certificate is for GetCertificate of a tls.Config. It blocks at most for the time to read the files.
func (f *Pair) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if f.checking.TryLock() {
		defer f.checking.Unlock()
		if now := time.Now(); now.Sub(f.checked) >= recheck {
			f.checked = now
			f.refresh()
		}
	}
	return f.cert.Load(), nil
}

// Check returns an error if c has no certificate. The error of net/http would be less clear.
func Check(c *tls.Config) error {
	if c.GetCertificate == nil && c.GetConfigForClient == nil && len(c.Certificates) == 0 {
		return errors.New("the TLS settings have no certificate")
	}
	return nil
}

// refresh reads the files if they have changed. If they cannot be used, for example because only one of them has been replaced
// yet, the previous certificate stays in use. This is logged once for each state of the files.
func (f *Pair) refresh() {
	info, err := f.stat()
	if err == nil && sameFile(info[0], f.seen[0]) && sameFile(info[1], f.seen[1]) {
		return
	}
	if err == nil {
		err = f.load()
	} else if f.seen == info {
		return // still missing
	}
	f.seen = info
	if err != nil {
		f.log.Warn("the changed certificate cannot be used: keeping the previous one", "error", err.Error())
		return
	}
	f.log.Info("certificate read again", "file", f.certFile)
}

func (f *Pair) stat() (info [2]os.FileInfo, err error) {
	for i, name := range []string{f.certFile, f.keyFile} {
		if info[i], err = os.Stat(name); err != nil {
			return [2]os.FileInfo{}, fmt.Errorf("check certificate: %w", err)
		}
	}
	return info, nil
}

func (f *Pair) load() error {
	cert, err := tls.LoadX509KeyPair(f.certFile, f.keyFile)
	if err != nil {
		return fmt.Errorf("load certificate: %w", err)
	}
	f.cert.Store(&cert)
	return nil
}

// sameFile reports whether a file seems unchanged, without reading it.
func sameFile(now, before os.FileInfo) bool {
	return before != nil && os.SameFile(now, before) && now.ModTime().Equal(before.ModTime()) && now.Size() == before.Size()
}
