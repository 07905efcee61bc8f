package topic_test

import (
	"fmt"
	"io"
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

// benchClients is the number of subscribers of the benchmarks.
const benchClients = 2000

// BenchmarkFanOut measures the processor time of the server for each delivery, without the processor time of the clients.
func BenchmarkFanOut(b *testing.B) {
	for _, burst := range []int{1, 16} {
		b.Run(fmt.Sprint(burst, " messages a turn"), func(b *testing.B) { fanOut(b, burst) })
	}
}

func fanOut(b *testing.B, burst int) {
	app := dunlin.New(dunlin.Config{Engine: dunlin.EngineLoop})
	hub := topic.New(app, topic.Settings{Bare: true})
	handler := websocket.New(websocket.Options{Open: func(c *websocket.Conn) {
		if err := hub.Subscribe(c, "", "x"); err != nil {
			b.Error(err)
		}
	}, PingInterval: -1})
	app.Get("/socket", func(r *dunlin.Request) dunlin.Response { return handler.Accept(r, nil) })
	addr := dunlintest.Serve(b, app)
	var clients []int
	for range benchClients {
		clients = append(clients, descriptor(b, dial(b, addr).Conn))
	}
	for hub.Stats().Subscribers < benchClients {
		runtime.Gosched()
	}
	message := []byte(strings.Repeat("x", 200))
	messages := make([][]byte, burst)
	for i := range messages {
		messages[i] = message
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	in := make([]byte, 64<<10)
	all, own, publishing := cpu(unix.RUSAGE_SELF), cpu(unix.RUSAGE_THREAD), time.Duration(0)
	for b.Loop() {
		start := cpu(unix.RUSAGE_THREAD)
		if err := hub.Topic("x").Publish(messages...); err != nil {
			b.Fatal(err)
		}
		publishing += cpu(unix.RUSAGE_THREAD) - start
		for !topic.CaughtUp(hub, "x") { // clients that read during the fan-out would cause wake-ups, which BenchmarkWriteLoop does not have
			<-time.After(time.Millisecond)
		}
		receiveAll(b, clients, in, burst*(200+4))
	}
	used := cpu(unix.RUSAGE_SELF) - all - (cpu(unix.RUSAGE_THREAD) - own) + publishing
	b.ReportMetric(float64(used.Nanoseconds())/float64(b.N*benchClients*burst), "cpu-ns/delivery")
}

// BenchmarkWriteLoop measures the lower bound of a fan-out: a loop of writes.
func BenchmarkWriteLoop(b *testing.B) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	var clients, servers []int
	for range benchClients {
		client, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		server, err := ln.Accept()
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _, _ = client.Close(), server.Close() })
		clients, servers = append(clients, descriptor(b, client)), append(servers, descriptor(b, server))
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	message := []byte(strings.Repeat("x", 204))
	in := make([]byte, 64<<10)
	var used time.Duration
	for b.Loop() {
		start := cpu(unix.RUSAGE_THREAD)
		for _, fd := range servers {
			if n, err := unix.Write(fd, message); n < len(message) {
				b.Fatal(err)
			}
		}
		used += cpu(unix.RUSAGE_THREAD) - start
		receiveAll(b, clients, in, len(message))
	}
	b.ReportMetric(float64(used.Nanoseconds())/float64(b.N*benchClients), "cpu-ns/delivery")
}

// receiveAll receives n bytes from each descriptor.
func receiveAll(b *testing.B, clients []int, in []byte, n int) {
	for _, fd := range clients {
		for got := 0; got < n; {
			k, err := unix.Read(fd, in[:n-got])
			if err == unix.EAGAIN {
				_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
				continue
			}
			if k <= 0 {
				b.Fatal(k, err, io.EOF)
			}
			got += k
		}
	}
}

func descriptor(b *testing.B, conn net.Conn) (fd int) {
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err == nil {
		err = raw.Control(func(u uintptr) { fd = int(u) })
	}
	if err != nil {
		b.Fatal(err)
	}
	return fd
}

// cpu returns the processor time used so far.
func cpu(who int) time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(who, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
