// Package fibpeer has the peers that use fib. They are a separate module, because fib needs Go 1.27.3.
package fibpeer

import (
	"encoding/json"
	"log/slog"
	"net/http"

	"github.com/lesismal/fib"
	fibhttp "github.com/lesismal/fib/http"
	fiblog "github.com/lesismal/fib/log"
	fibtls "github.com/lesismal/fib/tls"

	"github.com/dunlinhttp/dunlin/bench/peers/service"
)

// Serve serves a router on an address until the process ends. It supports HTTP/1.1 and HTTP/2, over TLS or in
// clear text.
func Serve(peer string, at service.Address, r *fibhttp.Router) {
	config := fib.DefaultConfig()
	config.LogSettings = false
	fiblog.Setup(fiblog.Config{Level: slog.LevelError})
	var handler fib.Handler = fibhttp.NewHandler(r)
	secure, err := at.TLS()
	if err != nil {
		service.Fail(peer, err)
	}
	if secure != nil {
		handler = fibtls.NewServer(fibhttp.ConfigureTLS(secure), fibhttp.NewHandler(r))
	}
	engine, err := fib.New(config, fib.Binding{Addr: at.Addr, Handler: handler})
	if err != nil {
		service.Fail(peer, err)
	}
	if addrs, err := engine.ListenAddrs(); err == nil && len(addrs) > 0 {
		at.Addr = addrs[0].String()
	}
	at.Ready(peer)
	service.Fail(peer, engine.Run())
}

// Text answers with a text.
func Text(c *fibhttp.Context, text string) {
	_ = c.Respond(http.StatusOK, "text/plain; charset=utf-8", []byte(text))
}

// JSON answers with v, encoded by encoding/json as in the other peers.
func JSON(c *fibhttp.Context, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		Error(c, err)
		return
	}
	_ = c.Respond(http.StatusOK, "application/json", body)
}

// Error answers with status 500.
func Error(c *fibhttp.Context, err error) {
	_ = c.Respond(http.StatusInternalServerError, "text/plain; charset=utf-8", []byte(err.Error()))
}
