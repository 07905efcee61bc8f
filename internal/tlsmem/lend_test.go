package tlsmem

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/tlsmem/tlstest"
)

// inputOf returns the input buffers of crypto/tls; the test is skipped if their layout is unknown.
func inputOf(t *testing.T, c *Conn) inputs {
	t.Helper()
	in, known := inputsOf(c.tls)
	if !known {
		t.Skip("with this release of Go records are copied")
	}
	return in
}

func TestRecordsAreDecryptedInPlace(t *testing.T) {
	onVersions(t, func(t *testing.T, version uint16) {
		l, client := newLink(t, version, dialGo)
		in := inputOf(t, l.server)
		for i := range 3 {
			text := fmt.Sprintf("message %d of a few", i)
			write(t, client, text)
			write(t, client, "more")
			records := l.sent(2)
			l.server.LendInPlace(records)
			b := make([]byte, 11)
			if n, err := l.server.Read(b); err != nil || string(b[:n]) != text[:11] {
				t.Fatalf("got %q, %v", b[:n], err)
			}
			if !bytes.Contains(records, []byte(text)) {
				t.Fatal("the record was not decrypted in place")
			}
			if lent := l.server.Lent(); len(lent) != len(records)-First(records) || &lent[0] != &records[First(records)] {
				t.Fatalf("got %d bytes not consumed, want the second record", len(lent))
			}
			if got, err := l.read(); !NeedsMore(err) || string(got) != text[11:]+"more" {
				t.Fatalf("got %q, %v", got, err)
			}
			if l.server.Holds() || len(l.server.Lent()) != 0 {
				t.Fatal("the connection refers to data that was read")
			}
		}
		l.server.Trim()
		if in.raw.Cap() != 0 || in.hand.Cap() != 0 || in.plain.Size() != 0 {
			t.Errorf("got buffers of %d, %d and %d bytes", in.raw.Cap(), in.hand.Cap(), in.plain.Size())
		}
	})
}

// After every byte of a record, and with another record after it, the rest can be moved, or copied.
func TestRecordsMoveAtEveryByte(t *testing.T) {
	onVersions(t, func(t *testing.T, version uint16) {
		l, client := newLink(t, version, dialGo)
		const text, next = "first message", "second"
		for at := range len(text) + len(next) + 1 {
			write(t, client, text)
			write(t, client, next)
			records := l.sent(2)
			l.server.LendInPlace(records)
			got := make([]byte, at)
			for n := 0; n < at; {
				k, err := l.server.Read(got[n:])
				if err != nil {
					t.Fatal(err)
				}
				n += k
			}
			l.server.Move(bytes.Clone(l.server.Lent()))
			clear(records)
			rest, err := l.read()
			if !NeedsMore(err) || string(got)+string(rest) != text+next {
				t.Fatalf("at %d: got %q and %q, %v", at, got, rest, err)
			}
			write(t, client, "copied")
			l.server.Lend(l.sent(1))
			if got, err := l.read(); !NeedsMore(err) || string(got) != "copied" {
				t.Fatalf("then %q, %v", got, err)
			}
		}
	})
}

func TestRecordsAfterUnreadRecordsAreCopied(t *testing.T) {
	onVersions(t, func(t *testing.T, version uint16) {
		l, client := newLink(t, version, dialGo)
		write(t, client, "copied")
		write(t, client, "in place")
		l.server.Lend(l.sent(1))
		b := make([]byte, 2)
		if _, err := io.ReadFull(l.server, b); err != nil {
			t.Fatal(err)
		}
		l.server.LendInPlace(l.sent(1)) // the rest of the first is in the memory of crypto/tls
		if got, err := l.read(); !NeedsMore(err) || string(got) != "piedin place" {
			t.Fatalf("got %q, %v", got, err)
		}
	})
}

func TestFatalRecordsInPlace(t *testing.T) {
	onVersions(t, func(t *testing.T, version uint16) {
		for name, end := range map[string]func(record []byte) []byte{
			"broken":  func(r []byte) []byte { r[len(r)-1] ^= 1; return r },
			"cut":     func(r []byte) []byte { r[4]--; return r },
			"no type": func(r []byte) []byte { r[0] = 99; return r },
			"version": func(r []byte) []byte { r[1] = 9; return r },
		} {
			l, client := newLink(t, version, dialGo)
			write(t, client, "good")
			write(t, client, "question")
			l.server.LendInPlace(append(l.sent(1), end(l.sent(1))...))
			got, err := l.read()
			if err == nil || NeedsMore(err) || err == io.EOF || string(got) != "good" {
				t.Errorf("%s: got %q, %v", name, got, err)
			}
			if l.server.Holds() || len(l.server.Out) == 0 {
				t.Errorf("%s: the connection refers to lent memory, or sent no alert", name)
			}
			if _, again := l.read(); again == nil || NeedsMore(again) {
				t.Errorf("%s: next read: got %v", name, again)
			}
		}
	})
}

func TestCloseNotifyInPlace(t *testing.T) {
	onVersions(t, func(t *testing.T, version uint16) {
		l, client := newLink(t, version, dialGo)
		write(t, client, "last words")
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
		l.server.LendInPlace(l.sent(2))
		if got, err := l.read(); err != io.EOF || string(got) != "last words" {
			t.Fatalf("got %q, %v", got, err)
		}
		if _, err := l.read(); err != io.EOF {
			t.Fatalf("next read: got %v", err)
		}
	})
}

// Bytes after the end, or after a broken record, are not retained, even where records are copied.
func TestNoLentMemoryAfterTheEnd(t *testing.T) {
	onVersions(t, func(t *testing.T, version uint16) {
		for name, end := range map[string]func(client io.ReadWriteCloser){
			"end":    func(client io.ReadWriteCloser) { _ = client.Close() },
			"broken": func(client io.ReadWriteCloser) { write(t, client, "question") },
		} {
			for _, inPlace := range []bool{false, true} {
				l, client := newLink(t, version, dialGo)
				end(client)
				records := l.sent(1)
				if name == "broken" {
					records[len(records)-1] ^= 1
				}
				records = append(records, make([]byte, 4<<10)...)
				if inPlace {
					l.server.LendInPlace(records)
				} else {
					l.server.Lend(records)
				}
				if _, err := l.read(); err == nil || NeedsMore(err) {
					t.Fatalf("%s: got %v", name, err)
				}
				if n := len(l.server.Lent()); n > 0 || l.server.Holds() {
					t.Errorf("%s, in place %v: the connection refers to %d lent bytes", name, inPlace, n)
				}
			}
		}
	})
}

func TestKeyUpdateInPlace(t *testing.T) {
	l, client := newLink(t, tls.VersionTLS13, dialRaw)
	raw := client.(*tlstest.Raw)
	long := strings.Repeat("long ", 3000)
	if err := raw.Send(raw.Record(tlstest.Application, []byte("before "), 0), raw.KeyUpdate(true), raw.Record(tlstest.Application, nil, 5),
		raw.Record(tlstest.Application, []byte(long), 100), raw.KeyUpdate(false), raw.Record(tlstest.Application, []byte("after"), 0)); err != nil {
		t.Fatal(err)
	}
	l.server.LendInPlace(l.sent(6))
	if got, err := l.read(); !NeedsMore(err) || string(got) != "before "+long+"after" {
		t.Fatalf("got %d bytes, %v", len(got), err)
	}
	if len(l.server.Out) == 0 || l.server.Holds() {
		t.Fatal("got no reply, or the connection refers to data that was read")
	}
}

func TestAttachAfterReadInPlace(t *testing.T) {
	onVersions(t, func(t *testing.T, version uint16) {
		l, client := newLink(t, version, dialGo)
		write(t, client, "one")
		write(t, client, "two")
		records := l.sent(2)
		l.server.LendInPlace(records)
		if _, err := io.ReadFull(l.server, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		rest := bytes.Clone(l.server.Lent())
		l.server.Move(nil)
		clear(records)
		conn := l.server.Attach(l.socket, rest)
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		write(t, client, "three")
		b := make([]byte, len("netwothree"))
		if _, err := io.ReadFull(conn, b); err != nil || string(b) != "netwothree" {
			t.Fatalf("got %q, %v", b, err)
		}
	})
}
