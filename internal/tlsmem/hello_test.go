package tlsmem

import (
	"bytes"
	"crypto/tls"
	"net"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/tlsmem/tlstest"
)

// sized returns the parts, preceded by their length in size bytes.
func sized(size int, parts ...string) string {
	content := strings.Join(parts, "")
	var length []byte
	for i := size - 1; i >= 0; i-- {
		length = append(length, byte(len(content)>>(8*i)))
	}
	return string(length) + content
}

func extension(kind byte, content string) string { return "\x00" + string(kind) + sized(2, content) }

// helloOf returns a ClientHello with extensions.
func helloOf(extensions ...string) string {
	return "\x01" + sized(3, "\x03\x03", strings.Repeat("r", 32), sized(1, "session"), sized(2, "\x13\x01"), sized(1, "\x00"), sized(2, extensions...))
}

func TestAsksToResume(t *testing.T) {
	versions, key, ticket, noTicket := extension(43, "\x02\x03\x04"), extension(41, "identities"), extension(35, "ticket"), extension(35, "")
	long := record(22, helloOf(extension(21, strings.Repeat("\x00", 15000)), key))
	for _, c := range []struct {
		name, in string
		want     bool
	}{
		{"nothing", "", false},
		{"no extensions", record(22, helloOf()), false},
		{"others", record(22, helloOf(versions)), false},
		{"a key", record(22, helloOf(versions, key)), true},
		{"pre_shared_key only", record(22, helloOf(key)), true},
		{"an empty key", record(22, helloOf(versions, extension(41, ""))), false},
		{"a key that is not the last", record(22, helloOf(key, versions)), false},
		{"an empty ticket and a key", record(22, helloOf(noTicket, key)), true},
		{"a ticket", record(22, helloOf(ticket, versions)), true},
		{"a ticket and a truncated extension", record(22, helloOf(ticket, "\x00\x2b\x00\x04\x02")), false},
		{"a ticket and half of a type", record(22, helloOf(ticket, "\x00")), false},
		{"an empty ticket", record(22, helloOf(noTicket, versions)), false},
		{"data after the record", record(22, helloOf(key)) + "\x14\x03", true},
		{"all but a byte", record(22, helloOf(key))[:len(record(22, helloOf(key)))-1], false},
		{"in two records", record(22, helloOf(key)[:20]) + record(22, helloOf(key)[20:]), false},
		{"more in the message", record(22, "\x01"+sized(3, helloOf(key)[4:], "x")), false},
		{"other message type", record(22, "\x02"+helloOf(key)[1:]), false},
		{"other record type", record(23, helloOf(key)), false},
		{"half a cipher suite", record(22, strings.Replace(helloOf(key), "\x00\x02\x13\x01", "\x00\x01\x13", 1)), false},
		{"as long as a record may be", long, true},
	} {
		in := []byte(c.in)
		if got := AsksToResume(in); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
		if twin := asksPlainly(in); twin != c.want {
			t.Errorf("%s: the reference implementation returns %v", c.name, twin)
		}
		if n := testing.AllocsPerRun(5, func() { AsksToResume(in) }); n > 0 {
			t.Errorf("%s: got %v allocations", c.name, n)
		}
	}
}

// The ClientHellos of crypto/tls with and without a session.
func TestAsksToResumeOfCryptoTLS(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		server, client := tlstest.Server(), tlstest.Client()
		client.MinVersion, client.MaxVersion = version, version
		client.ClientSessionCache = tls.NewLRUClientSessionCache(1)
		for _, want := range []bool{false, true} {
			hello, resumed := firstWords(t, server, client)
			if resumed != want {
				t.Fatalf("version %x: got resumed %v, want %v", version, resumed, want)
			}
			if got := AsksToResume(hello); got != want {
				t.Errorf("version %x: got %v, want %v", version, got, want)
			}
		}
	}
}

// heard records the first bytes that are read.
type heard struct {
	net.Conn
	first []byte
}

func (h *heard) Read(p []byte) (int, error) {
	n, err := h.Conn.Read(p)
	if len(h.first) < 16<<10 {
		h.first = append(h.first, p[:n]...)
	}
	return n, err
}

// firstWords returns the first bytes that a client sent, from its ClientHello on, and whether its session was resumed.
func firstWords(t *testing.T, server, client *tls.Config) (words []byte, resumed bool) {
	t.Helper()
	ours, theirs := net.Pipe()
	defer theirs.Close()
	h := &heard{Conn: ours}
	over := make(chan error, 1)
	go func() {
		conn := tls.Server(h, server)
		_, err := conn.Write([]byte("!")) // after the ticket
		over <- err
		ours.Close()
	}()
	conn := tls.Client(theirs, client)
	_, err := conn.Read(make([]byte, 1))
	if err == nil {
		err = <-over
	}
	if err != nil {
		t.Fatal(err)
	}
	return h.first, conn.ConnectionState().DidResume
}

// asksPlainly is a literal version of AsksToResume according to the RFC: a missing part panics.
func asksPlainly(b []byte) (asks bool) {
	defer func() {
		if recover() != nil {
			asks = false
		}
	}()
	length := func(b []byte) (n int) {
		for _, digit := range b {
			n = n*256 + int(digit)
		}
		return n
	}
	b = b[:len(b):len(b)]
	b = b[: 5+length(b[3:5]) : 5+length(b[3:5])]
	if b[0] != 22 || b[5] != 1 {
		return false
	}
	message := b[9 : 9+length(b[6:9])]
	message = message[:len(message):len(message)]
	at := 34
	part := func(size, from, to int) []byte {
		n := length(message[at : at+size])
		if n < from || n > to {
			panic("length")
		}
		at += size + n
		return message[at-n : at]
	}
	part(1, 0, 32)
	if suites := part(2, 2, 65534); len(suites)%2 == 1 {
		return false
	}
	part(1, 1, 255)
	end := at + 2 + length(message[at:at+2])
	if at += 2; end != len(message) {
		return false
	}
	ticket, key := false, false
	for at < end {
		if at += 2; key {
			return false
		}
		switch kind, content := length(message[at-2:at]), part(2, 0, 65535); kind {
		case 35:
			ticket = ticket || len(content) > 0
		case 41:
			if key = len(content) > 0; !key {
				return false
			}
		}
	}
	return ticket || key
}

func FuzzAsksToResume(f *testing.F) {
	f.Add([]byte(record(22, helloOf(extension(35, "ticket"), extension(41, "key")))))
	f.Add([]byte(record(22, helloOf(extension(35, ""), extension(43, "\x02\x03\x04")))))
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		if got, want := AsksToResume(b), asksPlainly(b); got != want {
			t.Fatalf("got %v, want %v", got, want)
		}
		if !bytes.Equal(b, before) {
			t.Fatal("AsksToResume changed its input")
		}
	})
}
