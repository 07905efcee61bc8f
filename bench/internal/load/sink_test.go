package load_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/bench/internal/load"
)

func TestSink(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().String()
	free.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- load.Sink{Addr: addr}.Run(ctx) }()
	var conn net.Conn
	for limit := time.Now().Add(10 * time.Second); ; {
		if conn, err = net.Dial("tcp", addr); err == nil {
			break
		}
		if time.Now().After(limit) {
			t.Fatal(err)
		}
	}
	defer conn.Close()
	for range 100 { // more than the system buffers for a client that does not read
		if _, err := conn.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n, err := conn.Read(make([]byte, 1)); err == nil {
		t.Errorf("got %d bytes", n)
	}
}
