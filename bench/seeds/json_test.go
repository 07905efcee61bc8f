package seeds_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"testing"

	"github.com/bytedance/sonic"
	sonicencoder "github.com/bytedance/sonic/encoder"
	goccy "github.com/goccy/go-json"
	segmentio "github.com/segmentio/encoding/json"

	"github.com/dunlinhttp/dunlin/bench/peers/service"
	"github.com/dunlinhttp/dunlin/internal/jsonwire"
)

// Post 001 (2017) encoded one small struct into a writer that discards:
//
//	Marshal, then Fprint       1,187 ns   248 B   5 allocations
//	Encoder                      731 ns    24 B   2 allocations
//	Encoder, by reference        660 ns     8 B   1 allocation
type hello struct {
	Message string
}

const helloJSON = `{"Message":"Hello World"}`

// An Encoder appends a newline to its output; the other ways do not.
var helloWays = []struct {
	name  string
	write func(w io.Writer) func(v *hello)
}{
	{"marshal", func(w io.Writer) func(*hello) {
		return func(v *hello) {
			data, _ := json.Marshal(*v)
			fmt.Fprint(w, string(data))
		}
	}},
	{"encoder", func(w io.Writer) func(*hello) {
		return func(v *hello) { json.NewEncoder(w).Encode(*v) }
	}},
	{"encoder-reference", func(w io.Writer) func(*hello) {
		return func(v *hello) { json.NewEncoder(w).Encode(v) }
	}},
	{"dunlin", func(w io.Writer) func(*hello) {
		var buf []byte
		return func(v *hello) {
			buf, _ = jsonwire.Append(buf[:0], v, jsonwire.Options{})
			w.Write(buf)
		}
	}},
}

func TestHello(t *testing.T) {
	for _, way := range helloWays {
		checkHello(t, way.name, way.write)
	}
}

func checkHello(tb testing.TB, name string, write func(io.Writer) func(*hello)) {
	tb.Helper()
	var out bytes.Buffer
	write(&out)(&hello{Message: "Hello World"})
	if got := string(bytes.TrimSuffix(out.Bytes(), []byte("\n"))); got != helloJSON {
		tb.Fatalf("%s: got %s, want %s", name, got, helloJSON)
	}
}

func BenchmarkHello(b *testing.B) {
	for _, way := range helloWays {
		b.Run(way.name, func(b *testing.B) {
			checkHello(b, way.name, way.write)
			response := &hello{Message: "Hello World"}
			write := way.write(io.Discard)
			b.ReportAllocs()
			for b.Loop() {
				write(response)
			}
		})
	}
}

// The list that post 003 served, 1,000 users and 108 KB. Encoders that append to a buffer get a used one; Marshal allocates its
// own.
var usersWays = []struct {
	name   string
	append func(dst []byte, users []service.User) ([]byte, error)
}{
	{"encoding-json", func(_ []byte, users []service.User) ([]byte, error) { return json.Marshal(users) }},
	{"goccy", func(_ []byte, users []service.User) ([]byte, error) { return goccy.Marshal(users) }},
	{"segmentio", func(dst []byte, users []service.User) ([]byte, error) {
		return segmentio.Append(dst, users, segmentio.EscapeHTML)
	}},
	{"sonic-marshal", func(_ []byte, users []service.User) ([]byte, error) { return sonic.Marshal(users) }},
	{"sonic", func(dst []byte, users []service.User) ([]byte, error) {
		err := sonicencoder.EncodeInto(&dst, users, 0)
		return dst, err
	}},
	{"sonic-escape-html", func(dst []byte, users []service.User) ([]byte, error) {
		err := sonicencoder.EncodeInto(&dst, users, sonicencoder.EscapeHTML)
		return dst, err
	}},
	{"by-hand", appendUsersByHand},
	{"dunlin", func(dst []byte, users []service.User) ([]byte, error) {
		return jsonwire.Append(dst, &users, jsonwire.Options{})
	}},
}

// appendUsersByHand is a hand-written encoder for this type, for strings that need no escape.
func appendUsersByHand(dst []byte, users []service.User) ([]byte, error) {
	dst = append(dst, '[')
	for i := range users {
		u := &users[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"Id":`...)
		dst = strconv.AppendInt(dst, int64(u.ID), 10)
		dst = append(dst, `,"Age":`...)
		dst = strconv.AppendInt(dst, int64(u.Age), 10)
		dst = append(dst, `,"First_Name":"`...)
		dst = append(dst, u.FirstName...)
		dst = append(dst, `","Last_Name":"`...)
		dst = append(dst, u.LastName...)
		dst = append(dst, `","Framework":"`...)
		dst = append(dst, u.Framework...)
		dst = append(dst, `"}`...)
	}
	return append(dst, ']'), nil
}

func TestUsers(t *testing.T) {
	for _, way := range usersWays {
		checkUsers(t, way.name, way.append)
	}
}

func checkUsers(tb testing.TB, name string, encode func([]byte, []service.User) ([]byte, error)) {
	tb.Helper()
	want, err := json.Marshal(service.Users())
	if err != nil {
		tb.Fatal(err)
	}
	got, err := encode(nil, service.Users())
	if err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
	if !bytes.Equal(got, want) {
		tb.Fatalf("%s: got %d bytes that differ from the %d bytes of encoding/json", name, len(got), len(want))
	}
}

func BenchmarkUsers(b *testing.B) {
	users := service.Users()
	for _, way := range usersWays {
		b.Run(way.name, func(b *testing.B) {
			checkUsers(b, way.name, way.append)
			buf, err := way.append(nil, users)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(buf)))
			b.ReportAllocs()
			for b.Loop() {
				if buf, err = way.append(buf[:0], users); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
