//go:build linux

package loophttp_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/suite"
)

// BenchmarkPipelined measures the time per request in pipelines long enough to make the cost of system calls small.
func BenchmarkPipelined(b *testing.B) {
	app := dunlin.New(dunlin.Config{Engine: dunlin.EngineLoop, Logger: slog.New(slog.DiscardHandler)})
	app.Get("/plaintext", suite.Text("Hello, World!"))
	app.Get("/json", func(*dunlin.Request) dunlin.Response {
		return dunlin.JSON(struct {
			Message string `json:"message"`
		}{"Hello, World!"})
	})
	app.Get("/users/{id}", func(r *dunlin.Request) dunlin.Response { return dunlin.Text(r.Param("id")) })
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- app.Serve(ln) }()
	b.Cleanup(func() {
		if err := app.Shutdown(context.Background()); err != nil {
			b.Error(err)
		}
		<-served
	})
	for _, path := range []string{"/plaintext", "/json", "/users/42"} {
		b.Run(path[1:], func(b *testing.B) { benchmarkPipelined(b, ln.Addr().String(), path) })
	}
}

func benchmarkPipelined(b *testing.B, addr, path string) {
	const batch = 256
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	one, answer := suite.Request("GET "+path), make([]byte, 1000)
	if _, err := io.WriteString(conn, one); err != nil {
		b.Fatal(err)
	}
	n, err := conn.Read(answer)
	if err != nil {
		b.Fatal(err)
	}
	requests, answers := []byte(strings.Repeat(one, batch)), make([]byte, batch*n)
	b.ResetTimer()
	for done := 0; done < b.N; done += batch {
		if _, err := conn.Write(requests); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(conn, answers); err != nil {
			b.Fatal(err)
		}
	}
}
