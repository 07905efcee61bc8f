package looph2_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/http2"
	"github.com/dunlinhttp/dunlin/internal/invariants"
)

// Ordinary requests do not allocate: with and without a body, in clear text and over TLS.
func TestStreamsAllocateNothing(t *testing.T) {
	if invariants.Enabled {
		t.Skip("with the race detector each request is made anew")
	}
	if runtime.GOOS != "linux" {
		t.Skip("the loop engine runs on Linux only")
	}
	register := func(app *dunlin.App) {
		app.Get("/hello", func(*dunlin.Request) dunlin.Response { return dunlin.Text("Hello, World!") })
		app.Get("/json", func(*dunlin.Request) dunlin.Response {
			return dunlin.JSON(struct {
				Message string `json:"message"`
			}{"Hello, World!"})
		})
		app.Get("/items/{id}", func(r *dunlin.Request) dunlin.Response { return dunlin.Text(r.Param("id")) })
		app.Post("/count", func(r *dunlin.Request) dunlin.Response {
			if body, err := r.Bytes(); err != nil || len(body) != 5 {
				return dunlin.Empty().Status(500)
			}
			return dunlin.Text("five")
		})
	}
	t.Run("h2c", func(t *testing.T) {
		s := startH2(t, dunlin.Config{Engine: dunlin.EngineLoop}, register)
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		wantAllocations(t, conn, 0)
	})
	t.Run("TLS", func(t *testing.T) {
		// crypto/tls allocates 24 bytes for each record that it reads: here one on each side, for all requests.
		wantAllocations(t, dialTLS(t, dunlin.Config{Engine: dunlin.EngineLoop}, register), 2)
	})
}

// dialTLS serves an app over TLS until the test ends, and returns an HTTP/2 connection to it.
func dialTLS(t *testing.T, config dunlin.Config, register func(*dunlin.App)) net.Conn {
	t.Helper()
	pki := httptest.NewUnstartedServer(nil) // for its certificate
	pki.StartTLS()
	certificates := pki.TLS.Certificates
	pki.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ready, served := make(chan struct{}), make(chan error, 1)
	config.Logger, config.Ready = slog.New(slog.DiscardHandler), func(net.Addr, dunlin.Engine) { close(ready) }
	app := dunlin.New(config)
	register(app)
	go func() { served <- app.ServeTLS(ln, &tls.Config{Certificates: certificates}) }()
	<-ready
	conn, err := tls.Dial("tcp", ln.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	if conn.ConnectionState().NegotiatedProtocol != "h2" {
		t.Fatal("HTTP/2 is not agreed")
	}
	t.Cleanup(func() {
		_ = conn.Close()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := errors.Join(app.Shutdown(ctx), <-served); err != nil {
			t.Error(err)
		}
	})
	return conn
}

// wantAllocations repeats ordinary requests, four at a time, and checks the number of allocations.
func wantAllocations(t *testing.T, conn net.Conn, want float64) {
	t.Helper()
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	const authority = "\x01\x01a"
	ordinary := [][]byte{
		append([]byte{0x82, 0x86, 0x04, 6}, "/hello"+authority...),
		append([]byte{0x82, 0x86, 0x04, 5}, "/json"+authority...),
		append([]byte{0x82, 0x86, 0x04, 9}, "/items/17"+authority...),
	}
	post := append([]byte{0x83, 0x86, 0x04, 6}, "/count"+authority...)
	out := append([]byte(http2.Preface), 0, 0, 0, frameSettings, 0, 0, 0, 0, 0)
	out = appendFrame(out, frameSettings, 1, 0, nil)
	out = appendFrame(out, 8, 0, 0, []byte{0x7f, 0, 0, 0}) // WINDOW_UPDATE: there is room for all answers
	id, buf := uint32(1), make([]byte, 64<<10)
	ask := func() {
		for _, block := range ordinary {
			out = appendFrame(out, frameHeaders, 5, id, block)
			id += 2
		}
		out = appendFrame(out, frameHeaders, 4, id, post)
		out = appendFrame(out, 0, 1, id, []byte("12345"))
		id += 2
		if _, err := conn.Write(out); err != nil {
			t.Fatal(err)
		}
		out = out[:0]
		for ended := 0; ended < len(ordinary)+1; {
			if _, err := io.ReadFull(conn, buf[:9]); err != nil {
				t.Fatal(err)
			}
			if buf[4]&1 != 0 && buf[3] <= 1 { // END_STREAM of DATA or HEADERS
				ended++
			}
			n := int(buf[1])<<8 | int(buf[2])
			if _, err := io.ReadFull(conn, buf[:n]); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 200 {
		ask()
	}
	const rounds = 1000
	least := 1e9
	for range 5 { // other goroutines of the process may allocate
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range rounds {
			ask()
		}
		runtime.ReadMemStats(&after)
		least = min(least, float64(after.Mallocs-before.Mallocs)/rounds)
	}
	if least > want+0.1 {
		t.Errorf("%.2f allocations for four requests, want %v", least, want)
	}
}

func appendFrame(b []byte, kind, flags byte, stream uint32, payload []byte) []byte {
	b = append(b, 0, byte(len(payload)>>8), byte(len(payload)), kind, flags, byte(stream>>24), byte(stream>>16), byte(stream>>8), byte(stream))
	return append(b, payload...)
}
