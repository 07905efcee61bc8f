package suite

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// Accepted connections use the keep-alive setting, also with a Multipath TCP listener, which package net creates by default.
func TestTCPKeepAlive(t *testing.T) {
	OnEngines(t, func(t *testing.T, engine dunlin.Engine) {
		for _, multipath := range []bool{false, true} {
			for after, want := range map[time.Duration]string{
				0:                       "on 15 15 9",
				1500 * time.Millisecond: "on 2 2 9",
				-1:                      "off",
			} {
				t.Run(fmt.Sprintf("after %v, multipath %v", after, multipath), func(t *testing.T) {
					var config net.ListenConfig
					config.SetMultipathTCP(multipath)
					ln, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
					if err != nil {
						t.Fatal(err)
					}
					addr, _ := StartOn(t, dunlin.Config{Engine: engine, Timeouts: dunlin.Timeouts{TCPKeepAlive: after}}, ln, func(app *dunlin.App) {
						handle(app, "/", tellKeepAlive)
					})
					got, err := io.ReadAll(AskConn(t, addr, Request("GET /")))
					if err != nil || string(got) != want {
						t.Errorf("got %q, %v, want %q", got, err, want)
					}
				})
			}
		}
	})
}

// tellKeepAlive responds with the keep-alive settings of its connection.
func tellKeepAlive(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		panic(err)
	}
	said := "off"
	_ = raw.Control(func(fd uintptr) {
		option := func(level, name int) int {
			n, err := syscall.GetsockoptInt(int(fd), level, name)
			if err != nil {
				panic(err)
			}
			return n
		}
		if option(syscall.SOL_SOCKET, syscall.SO_KEEPALIVE) != 0 {
			said = fmt.Sprintf("on %d %d %d", option(syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE),
				option(syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL), option(syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT))
		}
	})
	_, _ = io.WriteString(conn, said)
}
