package tlsmem

import (
	"bytes"
	"testing"
)

func record(kind byte, payload string) string {
	return string([]byte{kind, 3, 1, byte(len(payload) >> 8), byte(len(payload))}) + payload
}

func TestWhole(t *testing.T) {
	a, b := record(23, "one"), record(23, "twotwo")
	for _, c := range []struct {
		name, in string
		want     int
		records  int
	}{
		{"nothing", "", 0, 0},
		{"part of a header", a[:4], 0, 0},
		{"a header", a[:5], 0, 0},
		{"all but a byte", a[:len(a)-1], 0, 0},
		{"a record", a, len(a), 1},
		{"a record and the beginning of one", a + b[:7], len(a), 1},
		{"two records", a + b, len(a) + len(b), 2},
		{"an empty record", record(23, ""), 5, 1},
		{"one that is too long", "\x17\x03\x03\x48\x01", 5, 1},
		{"the longest", "\x17\x03\x03\x48\x00", 0, 0},
		{"no record at all", a + "GET / HTTP/1.1", len(a) + 14, 2},
	} {
		if got, n := Records([]byte(c.in)); got != c.want || n != c.records {
			t.Errorf("%s: got %d bytes of %d records, want %d of %d", c.name, got, n, c.want, c.records)
		}
		sum, n := 0, 0
		for k := First([]byte(c.in)); k > 0; k = First([]byte(c.in[sum:])) {
			sum, n = sum+k, n+1
		}
		if sum != c.want || n != c.records {
			t.Errorf("%s: one by one: got %d bytes of %d records, want %d of %d", c.name, sum, n, c.want, c.records)
		}
	}
}

func TestGreetFindsTheClientHello(t *testing.T) {
	hello := "\x01\x00\x00\x0ahello hell"
	whole := record(22, hello)
	for _, c := range []struct {
		name, in string
		want     Greeting
	}{
		{"nothing", "", Incomplete},
		{"a byte", whole[:1], Incomplete},
		{"part of a header", whole[:4], Incomplete},
		{"all but a byte", whole[:len(whole)-1], Incomplete},
		{"in one record", whole, Complete},
		{"followed by more", whole + "\x14", Complete},
		{"in two records", record(22, hello[:2]) + record(22, hello[2:]), Complete},
		{"half of it in two records", record(22, hello[:2]) + record(22, hello[2:9]), Incomplete},
		{"an alert in the middle", record(22, hello[:2]) + record(21, "\x01\x00"), Complete},
		{"an empty record", record(22, ""), Complete},
		{"other message type", record(22, "\x02\x00\x00\x0a"), Complete},
		{"first byte of another message type", record(22, "\x02\x00\x00\x0a")[:6], Complete},
		{"one that is too long", record(22, "\x01\x01\x00\x01"), Complete},
		{"an alert", "\x15", Complete},
		{"other version", "\x16\x04\x00\x00\x10", Complete},
		{"SSL 2", "\x80\x2e\x01", Complete},
		{"a letter", "G", NotTLS},
		{"a request", "GET / HTTP/1.1\r\n", NotTLS},
		{"lower case", "get", Complete},
		{"HTTP/2", "PRI * HTTP/2.0", NotTLS},
	} {
		if got := Greet([]byte(c.in)); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

func TestInHandshake(t *testing.T) {
	for in, want := range map[string]int{"\x80\x03\x01\x03\x03": 5, "\x80\x03\x01\x03": 0, record(22, "abc") + "\x80": 8, "\x81\x03\x01\x03\x03": 0} {
		if got := InHandshake([]byte(in)); got != want {
			t.Errorf("%q: got %d bytes of complete records, want %d", in, got, want)
		}
	}
}

// FuzzRecords checks that records are found for any division of the input: complete records stay complete when more data arrives, and
// the missing bytes of a record are exactly the ones that complete it.
func FuzzRecords(f *testing.F) {
	f.Add([]byte(record(22, "\x01\x00\x00\x02ab")+record(23, "abc")), 3)
	f.Add([]byte("\x17\x03\x03\xff\xff"), 2)
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"), 1)
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		whole := Whole(b)
		if whole < 0 || whole > len(b) {
			t.Fatalf("got Whole %d of %d bytes", whole, len(b))
		}
		cut = min(max(cut, 0), len(b))
		before := Whole(b[:cut])
		if before > whole {
			t.Fatalf("got Whole %d for %d bytes, but %d for all %d", before, cut, whole, len(b))
		}
		if rest := b[whole:]; len(rest) > 0 && Missing(rest) > 0 {
			full := append(bytes.Clone(rest), make([]byte, Missing(rest))...)
			if len(rest) >= headerLen && Whole(full) != len(full) {
				t.Fatalf("with the %d missing bytes: got Whole %d of %d", Missing(rest), Whole(full), len(full))
			}
		}
		// The verdict on a greeting does not change with later bytes.
		if first := Greet(b[:cut]); first != Incomplete && first != Greet(b) && cut >= 3 {
			t.Fatalf("got %v after %d bytes, %v after all %d", first, cut, Greet(b), len(b))
		}
	})
}
