//go:build linux

package stress_test

import (
	"bytes"
	"context"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/topic"
	"github.com/dunlinhttp/dunlin/websocket"
)

// A rawSocket is a client without memory of its own, so that the heap is that of the server.
type rawSocket int

// read reads n bytes, or less before the end.
func (s rawSocket) read(t *testing.T, b []byte) []byte {
	t.Helper()
	for got := 0; got < len(b); {
		n, err := unix.Read(int(s), b[got:])
		switch {
		case err == unix.EINTR:
		case err != nil:
			t.Fatal(err)
		case n == 0:
			return b[:got]
		default:
			got += n
		}
	}
	return b
}

// Ten thousand WebSockets that listen to a topic: the memory of each, what a message takes, and the close code of each in a drain.
func TestManySockets(t *testing.T) {
	sockets := 500
	if *full {
		var limit unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
		sockets = min(10_000, int(limit.Cur-200)/2)
	}
	app := dunlin.New(dunlin.Config{Engine: dunlin.EngineLoop})
	hub := topic.New(app, topic.Settings{Bare: true})
	handler := websocket.New(websocket.Options{
		Open: func(c *websocket.Conn) {
			if err := hub.Subscribe(c, "", "x"); err != nil {
				t.Error(err)
			}
		},
		Compress: true, PingInterval: -1,
	})
	app.Get("/", func(r *dunlin.Request) dunlin.Response { return handler.Accept(r, nil) })
	addr, err := net.ResolveTCPAddr("tcp", dunlintest.Serve(t, app))
	if err != nil {
		t.Fatal(err)
	}
	request := []byte("GET / HTTP/1.1\r\nHost: h.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
		"Sec-WebSocket-Extensions: permessage-deflate\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
	clients := make([]rawSocket, 0, sockets)
	head := 0
	b := make([]byte, 64<<10)
	open := func() {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			clients = append(clients, rawSocket(fd))
			err = unix.Connect(fd, &unix.SockaddrInet4{Port: addr.Port, Addr: [4]byte(addr.IP.To4())})
		}
		if err == nil {
			err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 60})
		}
		if err == nil {
			_, err = unix.Write(fd, request)
		}
		if err != nil {
			t.Fatal(err)
		}
		c := rawSocket(fd)
		if head == 0 {
			for ; !strings.HasSuffix(string(b[:head]), "\r\n\r\n"); head++ {
				c.read(t, b[head:head+1])
			}
			return
		}
		c.read(t, b[:head])
	}
	defer func() {
		for _, c := range clients {
			_ = unix.Close(int(c))
		}
	}()
	for range 50 { // what the server makes once
		open()
	}
	before := inUse()
	for len(clients) < sockets {
		open()
	}
	for hub.Stats().Subscribers < sockets {
		runtime.Gosched()
	}
	t.Logf("%d sockets that listen to a topic, with deflate agreed: %d B each", sockets, (inUse()-before)/int64(sockets-50))

	used, start := processorTime(), time.Now()
	const rounds, length = 10, 100
	for range rounds {
		if err := hub.Topic("x").Publish([]byte(strings.Repeat("x", length))); err != nil {
			t.Fatal(err)
		}
		for _, c := range clients {
			if got := c.read(t, b[:length+2]); len(got) != length+2 {
				t.Fatalf("a client got %d bytes", len(got))
			}
		}
	}
	t.Logf("a message of %d B takes %d ns of processor time for each socket, that of the client included; %v for all sockets",
		length, (processorTime()-used).Nanoseconds()/int64(rounds*sockets), time.Since(start)/rounds)
	t.Logf("afterwards %d B each", (inUse()-before)/int64(sockets-50))

	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	down := make(chan error, 1)
	start = time.Now()
	go func() { down <- app.Shutdown(ctx) }()
	reason := "server is shutting down: reconnect within 5000 ms"
	want := append([]byte{0x88, byte(2 + len(reason)), 0x03, 0xe9}, reason...)
	for _, c := range clients {
		if got := c.read(t, b[:len(want)]); !bytes.Equal(got, want) {
			t.Fatalf("a client got %q in the drain", got)
		}
		if _, err := unix.Write(int(c), []byte{0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe9}); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-down; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	t.Logf("the drain took %v", time.Since(start))
}

// inUse returns the bytes of the heap and the stacks.
func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

func processorTime() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
