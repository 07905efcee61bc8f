//go:build linux

package stress_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dunlinhttp/dunlin/bench/internal/load"
	"github.com/dunlinhttp/dunlin/bench/internal/proc"
)

// An inherited is a listening socket that outlives its services, as with systemd's socket activation. A stopped service leaves
// connections that it has not accepted to the next service.
type inherited struct {
	file *os.File
	addr string
	env  []string
	args []string
}

func newInherited(t *testing.T, name string, args ...string) *inherited {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := ln.(*net.TCPListener).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	// The method File is not used: os/exec would make it blocking, and with it the socket of the running service.
	fd, dupErr := -1, error(nil)
	if err := raw.Control(func(orig uintptr) { fd, dupErr = unix.FcntlInt(orig, unix.F_DUPFD_CLOEXEC, 0) }); err != nil || dupErr != nil {
		t.Fatal(err, dupErr)
	}
	f := os.NewFile(uintptr(fd), "listener")
	t.Cleanup(func() { _ = f.Close() })
	if err := ln.Close(); err != nil { // f stays
		t.Fatal(err)
	}
	return &inherited{f, ln.Addr().String(), []string{"LISTEN_FDS=1", "LISTEN_FDNAMES=" + name}, args}
}

// serve starts a service on the inherited listener.
func (h *inherited) serve(t *testing.T) (s *service, pid int) {
	t.Helper()
	s = startService(t, h.env, []*os.File{h.file}, h.args...)
	pid, addr := s.serving()
	if addr != h.addr {
		t.Fatalf("the service serves %s instead of the inherited %s", addr, h.addr)
	}
	return s, pid
}

// changeHands replaces the service repeatedly, by restarts and by stops with a new start. It returns when measure does.
func (h *inherited) changeHands(t *testing.T, measure func(d time.Duration)) {
	t.Helper()
	s, pid := h.serve(t)
	each := 2 * (underLoad + 500*time.Millisecond) // a restart and a stop
	measured := make(chan struct{})
	go func() {
		defer close(measured)
		measure(time.Duration(ends())*each + time.Second)
	}()
	for range ends() {
		time.Sleep(underLoad)
		pid = restart(t, s, pid, h.addr)
		time.Sleep(underLoad)
		s.signal(pid, syscall.SIGTERM)
		last, lastPid := s, pid
		s, pid = h.serve(t)
		if code := last.exitCode(lastPid); code != 0 {
			t.Errorf("exit code %d of a service that was told to stop", code)
		}
	}
	<-measured
	s.signal(pid, syscall.SIGTERM)
	if code := s.exitCode(pid); code != 0 {
		t.Errorf("exit code %d at the end", code)
	}
}

// wrk reports no error while the service on a socket is restarted, stopped and started.
func TestWrkWhileServicesChange(t *testing.T) {
	need(t, "wrk", "wrk")
	for _, engine := range either([]string{"loop"}, []string{"loop", "std"}) {
		t.Run(engine, func(t *testing.T) {
			h := newInherited(t, "http", "-engine", engine)
			w := load.Wrk{Threads: 2, Connections: 64, Path: "/pid"}
			h.changeHands(t, func(d time.Duration) {
				got, err := w.Run(t.Context(), folders(t).Bench, h.addr, nil, d)
				if err != nil {
					t.Error(err)
					return
				}
				t.Logf("wrk over %d restarts and %d stops: %d requests, p99 %v; %d failed (bar: 0)", ends(), ends(), got.Requests, got.P99, got.Errors())
				if got.Errors() > 0 || got.Requests == 0 {
					t.Errorf("%d connections failed, %d reads or writes, %d answers, %d timed out", got.Connect, got.IO, got.Status, got.Timeouts)
				}
			})
		})
	}
}

// Neither does h2load. It sends one request at a time on each connection, because it does not retry requests beyond the last
// stream of a GOAWAY, as other clients do (RFC 9113, section 8.7).
func TestH2LoadWhileServicesChange(t *testing.T) {
	need(t, "h2load", "nghttp2-client")
	cert, key := certificate(t)
	for _, c := range []struct {
		name, scheme, listener string
		args                   []string
	}{
		{"TLS", "https", "https", []string{"-tls-cert", cert, "-tls-key", key}},
		{"clear", "http", "http", []string{"-h2c"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newInherited(t, c.listener, c.args...)
			h.changeHands(t, func(d time.Duration) {
				// h2load stops when its first connection ends, so each run lasts one second.
				for end := time.Now().Add(d); time.Now().Before(end); {
					out, err := proc.Run(t.Context(), proc.Command{Path: "h2load", Args: []string{
						"-c" + strconv.Itoa(h2loadClients), "-m1", "-D1", c.scheme + "://" + h.addr + "/pid"}})
					if err != nil {
						t.Error(err)
						return
					}
					h2loadLost(t, out)
				}
			})
		})
	}
}

// h2loadClients is the number of h2load's connections, each with one request at a time.
const h2loadClients = 32

var h2loadCounts = regexp.MustCompile(`requests: \d+ total, (\d+) started, (\d+) done, (\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout`)

// h2loadLost compares the counts of h2load with the allowed ones.
func h2loadLost(t *testing.T, out string) {
	var started, done, succeeded, failed, errored, timeout int
	if _, err := fmt.Sscanf(h2loadCounts.FindString(out), "requests: %d total, %d started, %d done, %d succeeded, %d failed, %d errored, %d timeout",
		new(int), &started, &done, &succeeded, &failed, &errored, &timeout); err != nil {
		t.Errorf("no counts of h2load (%v) in:\n%s", err, out)
		return
	}
	t.Logf("h2load: %d requests; %d failed (bar: 0)", started, failed)
	if failed+errored+timeout > 0 || succeeded < started-h2loadClients || started == 0 { // requests are running when it ends
		t.Errorf("of %d requests %d succeeded, %d failed, %d timed out", started, succeeded, failed, timeout)
	}
}

// certificate creates a certificate for 127.0.0.1 and its key in two files.
func certificate(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "holds"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	cert, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("cert.pem", "CERTIFICATE", cert), write("key.pem", "PRIVATE KEY", private)
}
