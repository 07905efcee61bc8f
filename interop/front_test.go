package interop_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
)

// needTool returns the path of a program, and skips the test if it is not installed.
func needTool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil { // servers are installed outside the PATH of many users
		path, err = exec.LookPath("/usr/sbin/" + name)
	}
	if err != nil {
		if os.Getenv("DUNLIN_REQUIRE_ALL") != "" {
			t.Fatalf("DUNLIN_REQUIRE_ALL is set: %v", err)
		}
		t.Skipf("%v: install it to run this test", err)
	}
	return path
}

// behindFront serves, on each engine, an app that answers with the address of the client. 127.0.0.1 is a trusted proxy. If
// secure is set, it uses TLS.
func behindFront(t *testing.T, proxyProtocol, secure bool, f func(t *testing.T, addr string)) {
	for _, engine := range []dunlin.Engine{dunlin.EngineStd, dunlin.EngineLoop} {
		t.Run(engine.String(), func(t *testing.T) {
			if engine == dunlin.EngineLoop && runtime.GOOS != "linux" {
				t.Skip("the loop engine runs on Linux only")
			}
			app := dunlin.New(dunlin.Config{
				Engine: engine, Logger: slog.New(slog.DiscardHandler),
				Proxy: dunlin.ProxyConfig{Trusted: []string{"127.0.0.1"}, Protocol: proxyProtocol},
			})
			app.Post("/who", func(r *dunlin.Request) dunlin.Response {
				body, err := r.Bytes()
				if err != nil {
					return dunlin.Error(err)
				}
				proto := ""
				if secure {
					proto = " " + r.Std().Proto
				}
				return dunlin.Text(fmt.Sprintf("%v %d%s", r.Remote().Addr(), len(body), proto))
			})
			app.Get("/once", func(r *dunlin.Request) dunlin.Response {
				return dunlin.Text(r.Remote().Addr().String())
			}, middleware.RateLimit(middleware.RateLimitConfig{Limit: 1, Window: time.Hour}).Middleware())
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			served := make(chan error, 1)
			if secure {
				config, _ := localTLS(t)
				go func() { served <- app.ServeTLS(ln, config) }()
			} else {
				go func() { served <- app.Serve(ln) }()
			}
			t.Cleanup(func() {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				if err := errors.Join(app.Shutdown(ctx), <-served); err != nil {
					t.Error(err)
				}
			})
			f(t, ln.Addr().String())
		})
	}
}

// run starts a program that runs until the end of the test. If the test fails, run logs its output.
func run(t *testing.T, files []*os.File, name string, args ...string) {
	t.Helper()
	var said strings.Builder
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = &said, &said, files
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("output of %s: %s", filepath.Base(name), &said)
		}
	})
}

// dialFrom connects from an address to a server that is just starting.
func dialFrom(t *testing.T, from, addr string) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: patience}
	var conn net.Conn
	for until := time.Now().Add(patience); ; runtime.Gosched() {
		var err error
		if conn, err = dialer.Dial("tcp", addr); err == nil {
			break
		}
		if time.Now().After(until) {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return conn
}

// forged are the headers of a client that forges its address.
const forged = "X-Forwarded-For: %[1]s\r\nForwarded: for=%[1]s\r\nX-Real-Ip: %[1]s\r\n"

// once sends a request from one address, with headers that forge another one, to a route that serves each client once. It
// returns the status and the body.
func once(t *testing.T, from, as, addr string) (status int, body string) {
	t.Helper()
	conn := dialFrom(t, from, addr)
	defer conn.Close()
	_, _ = fmt.Fprintf(conn, "GET /once HTTP/1.1\r\nHost: h.example\r\nConnection: close\r\n"+forged+"\r\n", as)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// limitsClients fails the test if a limit is not applied to the real address of a client: forged addresses must not allow
// another request, and must not use up the requests of others.
func limitsClients(t *testing.T, addr string) {
	t.Helper()
	for _, from := range []string{"127.0.0.5", "127.0.0.6"} {
		if status, body := once(t, from, "127.0.0.6", addr); status != 200 || body != from {
			t.Errorf("first request of %s: got %d %q", from, status, body)
		}
		for _, as := range []string{"6.6.6.6", "127.0.0.7"} {
			if status, body := once(t, from, as, addr); status != 429 {
				t.Errorf("second request of %s, as %s: got %d %q, want 429", from, as, status, body)
			}
		}
	}
	if status, body := once(t, "127.0.0.7", "127.0.0.5", addr); status != 200 || body != "127.0.0.7" {
		t.Errorf("first request of 127.0.0.7: got %d %q", status, body)
	}
}

// refusesNames fails the test if the app accepts the PROXY protocol from a client that is not a proxy.
func refusesNames(t *testing.T, addr string) {
	t.Helper()
	for _, name := range []string{
		"PROXY TCP4 6.6.6.6 127.0.0.1 5000 80\r\n",
		"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\x06\x06\x06\x06\x7f\x00\x00\x01\x13\x88\x00\x50",
	} {
		conn := dialFrom(t, "127.0.0.3", addr)
		_, _ = io.WriteString(conn, name+"POST /who HTTP/1.1\r\nHost: h.example\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx")
		answer, _ := io.ReadAll(conn) // the connection may be reset
		_ = conn.Close()
		if strings.Contains(string(answer), " 200 ") || strings.Contains(string(answer), "6.6.6.6 ") {
			t.Errorf("client that begins with %q: got answer %q", name, answer)
		}
	}
}

// whoAsks sends a request from an address, with a forged header, and returns the client's address as the app reports it.
func whoAsks(t *testing.T, from, addr string) string {
	t.Helper()
	conn := dialFrom(t, from, addr)
	defer conn.Close()
	_, _ = fmt.Fprintf(conn, "POST /who HTTP/1.1\r\nHost: h.example\r\nConnection: close\r\n"+forged+"Content-Length: 100000\r\n\r\n%[2]s",
		"6.6.6.6", strings.Repeat("x", 100_000))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// HAProxy sends the client's address by the PROXY protocol, or by X-Forwarded-For.
func TestBehindHAProxy(t *testing.T) {
	haproxy := needTool(t, "haproxy")
	for _, how := range []struct{ name, option, server, tls string }{
		{"send-proxy", "", "send-proxy", ""},
		{"send-proxy-v2", "", "send-proxy-v2", ""},
		{"send-proxy-v2 with a checksum and more", "", "send-proxy-v2 proxy-v2-options crc32c,unique-id", ""},
		{"send-proxy-v2 by TLS", "", "send-proxy-v2 ssl verify none alpn http/1.1", " HTTP/1.1"},
		{"send-proxy-v2 by TLS and HTTP/2", "", "send-proxy-v2 ssl verify none alpn h2", " HTTP/2.0"},
		{"forwardfor", "option forwardfor", "", ""},
		{"forwardfor by TLS and HTTP/2", "option forwardfor", "ssl verify none alpn h2", " HTTP/2.0"},
	} {
		t.Run(how.name, func(t *testing.T) {
			behindFront(t, strings.HasPrefix(how.server, "send-proxy"), how.tls != "", func(t *testing.T, addr string) {
				ln, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				defer ln.Close()
				file, err := ln.(*net.TCPListener).File()
				if err != nil {
					t.Fatal(err)
				}
				defer file.Close()
				config := filepath.Join(t.TempDir(), "haproxy.cfg")
				text := fmt.Sprintf("defaults\n mode http\n timeout connect 20s\n timeout client 20s\n timeout server 20s\n %s\n"+
					"frontend f\n bind fd@3\n unique-id-format %%ci\n default_backend b\nbackend b\n server s %s %s\n", how.option, addr, how.server)
				if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				run(t, []*os.File{file}, haproxy, "-db", "-f", config)
				for range 2 {
					if got := whoAsks(t, "127.0.0.3", ln.Addr().String()); got != "127.0.0.3 100000"+how.tls {
						t.Errorf("the client is %q", got)
					}
				}
				limitsClients(t, ln.Addr().String())
				refusesNames(t, ln.Addr().String()) // through the proxy
				if how.tls == "" {
					refusesNames(t, addr)
				}
			})
		})
	}
}

// Nginx appends the client's address to the addresses that the client has sent.
func TestBehindNginx(t *testing.T) {
	nginx := needTool(t, "nginx")
	t.Run("in clear text", func(t *testing.T) { behindNginx(t, nginx, false) })
	t.Run("by TLS", func(t *testing.T) { behindNginx(t, nginx, true) })
}

func behindNginx(t *testing.T, nginx string, secure bool) {
	scheme, proto := "http", ""
	if secure {
		scheme, proto = "https", " HTTP/1.1"
	}
	behindFront(t, false, secure, func(t *testing.T, addr string) {
		if !secure {
			if got := whoAsks(t, "127.0.0.3", addr); got != "127.0.0.3 100000" {
				t.Errorf("without a proxy the client is %q", got)
			}
			refusesNames(t, addr)
		}
		dir := t.TempDir()
		free, err := net.Listen("tcp", "127.0.0.8:0") // no other test uses this address, so its port is still free when nginx starts
		if err != nil {
			t.Fatal(err)
		}
		front := free.Addr().String()
		_ = free.Close()
		text := fmt.Sprintf(`daemon off; master_process off; pid %[1]s/pid; error_log stderr;
events {}
http {
	access_log off; client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
	server {
		listen %[2]s;
		location / {
			proxy_pass %[4]s://%[3]s;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			proxy_set_header Host $host;
			proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
			proxy_set_header X-Forwarded-Proto $scheme;
		}
	}
}`, dir, front, addr, scheme)
		config := filepath.Join(dir, "nginx.conf")
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, nil, nginx, "-p", dir, "-c", config)
		for range 2 {
			if got := whoAsks(t, "127.0.0.3", front); got != "127.0.0.3 100000"+proto {
				t.Errorf("the client is %q", got)
			}
		}
		limitsClients(t, front)
		refusesNames(t, front)
	})
}
