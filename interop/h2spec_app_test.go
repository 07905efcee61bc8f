package interop_test

import (
	"context"
	"net"
	"runtime"
	"strings"
	"testing"

	"github.com/summerwind/h2spec"
	"github.com/summerwind/h2spec/config"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/tlsmem/tlstest"
)

// TestH2specOfApp runs h2spec, with its strict rules, against the HTTP/2 of the loop engine, in clear text and over TLS.
func TestH2specOfApp(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the loop engine runs on Linux only")
	}
	for name, secure := range map[string]bool{"clear": false, "TLS": true} {
		t.Run(name, func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			ready := make(chan struct{})
			app := dunlin.New(dunlin.Config{Engine: dunlin.EngineLoop, H2C: dunlin.H2CPriorKnowledge, Ready: func(net.Addr, dunlin.Engine) { close(ready) }})
			app.Handle("*", "/", func(r *dunlin.Request) dunlin.Response {
				if _, err := r.Bytes(); err != nil { // otherwise the response may precede the violation by h2spec
					return dunlin.Error(err)
				}
				return dunlin.Text(strings.Repeat("x", 300))
			})
			served := make(chan error, 1)
			go func() {
				if secure {
					served <- app.ServeTLS(ln, tlstest.Server())
				} else {
					served <- app.Serve(ln)
				}
			}()
			<-ready
			t.Cleanup(func() {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				if err := app.Shutdown(ctx); err != nil {
					t.Error(err)
				}
				<-served
			})
			var sections []string // all
			if !secure {
				// A connection without the preface (3.5/2) is HTTP/1.1 there, and has a response of HTTP/1.1.
				sections = []string{"generic", "hpack", "http2/3.5/1", "http2/4", "http2/5", "http2/6", "http2/7", "http2/8"}
			}
			ok, err := h2spec.Run(&config.Config{
				Host: "127.0.0.1", Port: ln.Addr().(*net.TCPAddr).Port, Path: "/", Timeout: patience, MaxHeaderLen: 4000, Strict: true,
				TLS: secure, Insecure: secure, Sections: sections,
			})
			if err != nil || !ok {
				t.Errorf("h2spec reports failures, see above (%v)", err)
			}
		})
	}
}
