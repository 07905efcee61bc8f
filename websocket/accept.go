package websocket

import (
	"net/http"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/ws"
)

// inside gives this package the internal methods of package dunlin.
var inside = dunlin.Internal(exchange.Module{})

// A Handler opens WebSockets with the same Options. Its methods are safe for concurrent use.
type Handler struct {
	o    Options
	stat exchange.BlockingStat // of the event functions
}

// New returns a Handler. It panics if the options are invalid or contradict each other. The slices of the options must not change
// afterwards.
func New(o Options) *Handler {
	o.validate()
	o.complete()
	return &Handler{o: o}
}

// Accept is [Handler.Accept] with options for one connection only, such as functions that refer to the user of the request. They
// take 200 bytes for each connection. Use a Handler for connections with the same options.
func Accept(r *dunlin.Request, o Options) dunlin.Response { return New(o).Accept(r, nil) }

// Accept returns the response that opens a WebSocket: 101, if the request is an opening handshake (RFC 6455, section 4.2.1) and its
// origin is allowed. Otherwise the status is 426, 400 or 403. Callers may add headers to the response. If middleware replaces it,
// no WebSocket is opened. Conn.Value returns value.
//
// The request ends when the WebSocket opens: the functions of Options must not use it. The connection must use HTTP/1.1.
func (h *Handler) Accept(r *dunlin.Request, value any) dunlin.Response {
	o := &h.o
	key := r.Header("Sec-WebSocket-Key")
	switch {
	case r.Method() != http.MethodGet || !ws.HasToken(r.Header("Connection"), "upgrade") || !ws.HasToken(r.Header("Upgrade"), "websocket"):
		return problem(http.StatusUpgradeRequired, "this resource is a WebSocket: the request must be an upgrade of HTTP/1.1").
			Header("Sec-WebSocket-Version", "13")
	case r.Header("Sec-WebSocket-Version") != "13":
		return problem(http.StatusUpgradeRequired, "version of WebSocket is not 13").Header("Sec-WebSocket-Version", "13")
	case !ws.ValidKey(key):
		return problem(http.StatusBadRequest, "Sec-WebSocket-Key is not 16 bytes in base64")
	case r.Header("Transfer-Encoding") != "" || r.Header("Content-Length") != "" && r.Header("Content-Length") != "0":
		return problem(http.StatusBadRequest, "opening handshake has a body")
	case !ws.AllowsOrigin(o.Origins, r.Header("Origin"), r.Host()):
		return problem(http.StatusForbidden, "pages of this origin may not open the WebSocket")
	}
	c := &Conn{h: h, value: value, subprotocol: int8(ws.Subprotocol(r.Header("Sec-WebSocket-Protocol"), o.Subprotocols))}
	resp := inside.Upgrade((*protocol)(c)).Header("Sec-WebSocket-Accept", ws.AcceptKey(key))
	if c.subprotocol >= 0 {
		resp = resp.Header("Sec-WebSocket-Protocol", o.Subprotocols[c.subprotocol])
	}
	if o.Compress {
		if d := ws.NegotiateDeflate(r.Header("Sec-WebSocket-Extensions")); d.On {
			c.window = d.Window
			resp = resp.Header("Sec-WebSocket-Extensions", d.Field())
		}
	}
	return resp
}

func problem(status int, detail string) dunlin.Response {
	return dunlin.Problem(&dunlin.ProblemDetails{Status: status, Detail: detail})
}
