package tickets_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunlinhttp/dunlin/internal/tickets"
	"github.com/dunlinhttp/dunlin/internal/tlsmem/tlstest"
)

// A visitor is a client that remembers its sessions.
type visitor struct{ config *tls.Config }

func newVisitor(version uint16) visitor {
	c := tlstest.Client().Clone()
	c.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	c.MinVersion, c.MaxVersion = version, version
	c.ServerName = "dunlin.test"
	c.InsecureSkipVerify = true
	return visitor{c}
}

// resumes makes a handshake and reports whether it resumed a session.
func (v visitor) resumes(t *testing.T, server *tls.Config) bool {
	t.Helper()
	near, far := net.Pipe()
	ended := make(chan error, 1)
	go func() {
		conn := tls.Server(far, server)
		_, err := conn.Write([]byte{1})
		ended <- err
		_ = far.Close()
	}()
	conn := tls.Client(near, v.config)
	if _, err := conn.Read(make([]byte, 1)); err != nil { // sent after the ticket of TLS 1.3
		t.Fatal(err)
	}
	_ = near.Close()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	return conn.ConnectionState().DidResume
}

var versions = []uint16{tls.VersionTLS12, tls.VersionTLS13}

// expect fails the test unless the session is resumed as wanted.
func expect(t *testing.T, what string, v visitor, server *tls.Config, want bool) {
	t.Helper()
	if got := v.resumes(t, server); got != want {
		t.Errorf("%s: got resumed %v, want %v", what, got, want)
	}
}

func TestNextProcessAcceptsTickets(t *testing.T) {
	for _, version := range versions {
		v, first, next := newVisitor(version), new(tickets.Keys), new(tickets.Keys)
		here := first.Secure(tlstest.Server(), "a:443")
		expect(t, "the first visit", v, here, false)
		expect(t, "the second", v, here, true)
		if err := next.Unmarshal(first.Marshal()); err != nil {
			t.Fatal(err)
		}
		expect(t, "in the next process", v, next.Secure(tlstest.Server(), "a:443"), true)
		expect(t, "at another address", v, next.Secure(tlstest.Server(), "b:443"), false)
		expect(t, "in a process without the keys", v, new(tickets.Keys).Secure(tlstest.Server(), "b:443"), false)
	}
}

func TestKeysRotate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const day = 24 * time.Hour
		v, keys := newVisitor(tls.VersionTLS12), new(tickets.Keys)
		v.config.Time = func() time.Time { return time.Unix(0, 0) } // the tickets never expire for the client
		server := keys.Secure(tlstest.Server(), "")
		expect(t, "the first visit", v, server, false)
		one := len(keys.Marshal())
		time.Sleep(day - time.Second)
		expect(t, "within a day", v, server, true)
		if len(keys.Marshal()) != one {
			t.Error("got a new key within a day")
		}
		time.Sleep(time.Second)
		newVisitor(tls.VersionTLS13).resumes(t, server)
		if len(keys.Marshal()) != 2*one {
			t.Error("got no new key after a day")
		}
		expect(t, "a day later", v, server, true)
		for range 20 {
			time.Sleep(day)
			newVisitor(tls.VersionTLS13).resumes(t, server)
		}
		if got := len(keys.Marshal()) / one; got != 7 {
			t.Errorf("got %d keys, want 7", got)
		}
		expect(t, "weeks later", v, server, false)
	})
}

// Explicit keys are used, so that several machines accept each other's tickets.
func TestConfiguredKeysTakePrecedence(t *testing.T) {
	for _, set := range []func(*tls.Config){
		func(c *tls.Config) { c.SetSessionTicketKeys([][32]byte{{1, 2, 3}}) },
		//lint:ignore SA1019 people have it
		func(c *tls.Config) { c.SessionTicketKey = [32]byte{1, 2, 3} },
	} {
		for _, version := range versions {
			machine := func() *tls.Config {
				c := tlstest.Server().Clone()
				set(c)
				return new(tickets.Keys).Secure(c, "a:443")
			}
			v := newVisitor(version)
			expect(t, "the first visit", v, machine(), false)
			expect(t, "another machine", v, machine(), true)
		}
	}
}

// Tickets of clients that may have shown a certificate are not passed on.
func TestClientCertificatesAreRequestedAgain(t *testing.T) {
	for _, set := range []func(*tls.Config){
		func(c *tls.Config) { c.ClientAuth, c.ClientCAs = tls.RequestClientCert, x509.NewCertPool() },
		func(c *tls.Config) {
			c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, nil }
		},
		func(c *tls.Config) { c.SessionTicketsDisabled = true },
	} {
		config, keys := tlstest.Server().Clone(), new(tickets.Keys)
		set(config)
		if keys.Secure(config, "") != config {
			t.Error("Secure changed the config")
		}
	}
}

func TestUnmarshalErrors(t *testing.T) {
	for _, b := range [][]byte{make([]byte, 39), make([]byte, 65*40)} {
		if new(tickets.Keys).Unmarshal(b) == nil {
			t.Errorf("Unmarshal accepted %d bytes", len(b))
		}
	}
	if err := new(tickets.Keys).Unmarshal(nil); err != nil {
		t.Error(err)
	}
}
