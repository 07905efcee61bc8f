//go:build linux

package loophttp

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/dunlinhttp/dunlin/internal/http1"
	"github.com/dunlinhttp/dunlin/internal/http2"
	"github.com/dunlinhttp/dunlin/internal/looph2"
	"github.com/dunlinhttp/dunlin/internal/view"
)

// upgrade switches to HTTP/2 if the request requests it as in RFC 7540, section 3.2: with h2c in Upgrade and one
// HTTP2-Settings, both named by Connection. Connection may name no other field except keep-alive: other named fields apply
// only to this connection, which a request of HTTP/2 cannot express.
//
// Some such requests are answered in HTTP/1.1 instead, as by a server without HTTP/2: those with a body, which would have to
// be read first; with malformed settings; during a shutdown; from a client that wants the connection closed; and requests
// that HTTP/2 would interpret differently or refuse as too large.
func (x *wire) upgrade() bool {
	h, d, c := &x.head, x.d, x.Conn
	if !h.Upgrade || c.Secure() || !d.Inline() || d.Draining() || !h.KeepAlive || len(h.Host()) == 0 || string(h.MethodBytes()) == http.MethodConnect {
		return false
	}
	asked, settings := h2cAsked(h)
	if !asked {
		return false
	}
	var block http2.Block
	block.SetTarget(h.MethodBytes(), h.Host(), pathOf(h))
	for i := range h.Len() {
		name, value := h.Field(i)
		if lower := strings.ToLower(string(name)); !ofConnection(lower, value) {
			block.Add(lower, view.String(value))
		}
	}
	if block.Size > x.handler.server.MaxHead {
		return false
	}
	d.Out = append(d.Out, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"...)
	c.Switch(x.handler.h2.Upgrade(d, c, looph2.Upgrade{Settings: settings, Block: block.Bytes}))
	return true
}

// h2cAsked reports whether a request requests HTTP/2 in clear text, and returns its settings.
func h2cAsked(h *http1.Head) (yes bool, settings []byte) {
	var upgrade, withSettings bool // named by Connection
	var encoded []byte
	protocols, found := 0, 0
	for i := range h.Len() {
		name, value := h.Field(i)
		switch {
		case bytes.EqualFold(name, []byte("Connection")):
			for option := range strings.SplitSeq(string(value), ",") {
				switch strings.ToLower(strings.Trim(option, " \t")) {
				case "upgrade":
					upgrade = true
				case "http2-settings":
					withSettings = true
				case "keep-alive", "":
				default:
					return false, nil
				}
			}
		case bytes.EqualFold(name, []byte("HTTP2-Settings")):
			encoded = value
			found++
		case bytes.EqualFold(name, []byte("Upgrade")):
			for protocol := range strings.SplitSeq(string(value), ",") {
				if strings.Trim(protocol, " \t") == "h2c" {
					protocols++
				}
			}
		}
	}
	if protocols == 0 || found != 1 || !upgrade || !withSettings {
		return false, nil
	}
	settings, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(string(encoded), "="))
	return err == nil && http2.ValidSettings(settings), settings
}

// ofConnection reports whether a field concerns the connection, or is expressed differently in HTTP/2. name is in lower case.
func ofConnection(name string, value []byte) bool {
	switch name {
	case "connection", "host", "http2-settings", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade":
		return true
	case "te":
		return !bytes.EqualFold(value, []byte("trailers"))
	}
	return false
}

// pathOf returns the :path of HTTP/2, which includes the query.
func pathOf(h *http1.Head) []byte {
	if h.Form == http1.OriginForm {
		return h.Target()
	}
	path := bytes.Clone(h.Path())
	if query := h.Query(); len(query) > 0 {
		path = append(append(path, '?'), query...)
	}
	return path
}
