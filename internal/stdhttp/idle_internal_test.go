//go:build linux

package stdhttp

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// A request that has come is none on an idle connection, though net/http has not seen it yet.
func TestIdleConnectionsWithARequest(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	client, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	served, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = served.Close() }()

	var o openConns
	c := &timedConn{Conn: served, server: new(exchange.Server)}
	o.add(nil)
	o.add(c)
	want := func(what string, unread, begun bool) {
		t.Helper()
		if u, b := o.look(); u != unread || b != begun {
			t.Errorf("%s: unread %v, begun %v; want %v, %v", what, u, b, unread, begun)
		}
	}
	if c.idle.Load() != idle {
		t.Error("a new one is not idle")
	}
	want("nothing has come", false, false)
	o.awaitRead(t.Context())

	send := func(text string) {
		t.Helper()
		if _, err := io.WriteString(client, text); err != nil {
			t.Fatal(err)
		}
		for unreadOf(served) == 0 && t.Context().Err() == nil { // the system brings it
			runtime.Gosched()
		}
	}
	send("GET / HTTP/1.1\r\n")
	want("a request has come", true, false)
	ended, end := context.WithCancel(t.Context())
	end()
	o.awaitRead(ended) // the end of a drain does not wait
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		o.awaitRead(t.Context())
	}()
	if _, err := io.ReadFull(c, make([]byte, 16)); err != nil {
		t.Fatal(err)
	}
	want("it is read", false, true)
	c.setIdle(notIdle)
	<-waited
	want("it is a request", false, false)
	isOpen := func(what string, want bool) {
		t.Helper()
		if _, err := served.Write([]byte("x")); errors.Is(err, net.ErrClosed) == want {
			t.Errorf("%s: %v", what, err)
		}
	}
	o.closeIdle()
	isOpen("one with a request", true)
	c.setIdle(idle)
	send("G")
	o.closeIdle()
	isOpen("one on which something has come", true)
	if _, err := c.Conn.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	c.setIdle(hasRead)
	o.closeIdle()
	isOpen("one with the beginning of a request", true)
	c.setIdle(idle)
	o.end(t.Context(), new(sync.WaitGroup))
	isOpen("one on which nothing has come", false)
	if c.setIdle(hasRead); len(o.all) != 1 {
		t.Errorf("%d connections", len(o.all))
	}
	o.remove(c)
	o.remove(nil)
	want("it is closed", false, false)
}
