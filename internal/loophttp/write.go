//go:build linux

package loophttp

import (
	"net/http"
	"strings"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/http1"
	"github.com/dunlinhttp/dunlin/internal/semantics"
	"github.com/dunlinhttp/dunlin/internal/view"
)

// respond appends a final response to the driver's output and releases the memory of the response.
func (x *wire) respond(resp *exchange.Answer) {
	if resp.Kind() == exchange.Sent {
		resp.Release()
		return
	}
	body, d, status := resp.Body, x.d, resp.Status()
	if base, all := resp.Rendered(); all && len(body) < ownedBody && !resp.Announces() && x.minor != 0 && !x.Undated && !x.closing &&
		http1.BodyAllowed(x.head.Method, status) { // the common case
		if x.opening == nil {
			x.opening = new(http1.Opening)
		}
		out := x.opening.Append(d.Out, status, d.Unix())
		switch {
		case base == nil:
		case base.IsWhole():
			out = append(out, base.Wire...)
		default:
			out = resp.AppendBase(out)
		}
		d.Out = append(http1.AppendLastLength(out, len(body)), body...)
		if resp.Own() != nil {
			resp.Release()
		}
		return
	}
	x.appendHead(resp, resp.Announced())
	switch {
	case body == "" || !http1.BodyAllowed(x.head.Method, status):
		resp.Release()
	case len(body) >= ownedBody && x.gathered != nil && view.Within(body, x.gathered.body):
		d.WriteOwned(view.Bytes(body), x.gathered)
		x.gathered = nil
		resp.Release()
	case len(body) >= ownedBody && view.Within(body, x.State.Payload) && cap(x.State.Payload) > exchange.KeptPayload:
		d.WriteOwned(x.Call.DetachBody(body), nil)
		resp.Release()
	case len(body) < ownedBody || x.viewsRequest(body):
		d.Out = append(d.Out, body...)
		resp.Release()
	case resp.Own() != nil:
		own, b := resp.Lend() // with its capacity, which is the memory held by pending output
		d.WriteOwned(b, own)
	default:
		d.WriteOwned(view.Bytes(body), nil)
	}
}

// appendHead appends the head of a response: status line, date, the fields of the response, framing. length is the length of
// the body, -1 if unknown.
func (x *wire) appendHead(resp *exchange.Answer, length int64) {
	out := x.d.Out
	status := resp.Status()
	if x.minor == 0 {
		out = http1.AppendStatusLine10(out, status)
	} else {
		out = http1.AppendStatusLine(out, status)
	}
	if !x.Undated && !resp.Dated() {
		if x.opening == nil {
			x.opening = new(http1.Opening)
		}
		out = x.opening.Date.AppendField(out, x.d.Unix())
	}
	block, own := resp.Base(), resp.Fields()
	switch {
	case len(own) > 0 && status != http.StatusNotModified:
		out = resp.AppendHeaders(out)
	case status == http.StatusNotModified:
		for name, value := range resp.Headers {
			if strings.EqualFold(name, "Content-Type") {
				continue // it describes a body that is not sent; net/http omits it too
			}
			out = http1.AppendField(out, name, value)
		}
	case block != nil:
		if block.IsWhole() {
			out = append(out, block.Wire...)
		} else {
			out = resp.AppendBase(out)
		}
	}
	if x.head.Method == semantics.MethodConnect && !http1.BodyAllowed(x.head.Method, status) {
		x.closing = true // a proxy might take it for a tunnel and forward unchecked bytes
	}
	switch {
	case length >= 0:
		if http1.LengthAllowed(x.head.Method, status) && status != http.StatusNotModified {
			out = http1.AppendContentLength(out, length)
		}
	case length == exchange.NoLength || !http1.BodyAllowed(x.head.Method, status):
		// No body follows, or the end of the connection ends it.
	case x.minor == 0:
		x.closing = true // the end of the connection ends the body
	default:
		out = append(out, http1.TransferEncodingChunked...)
	}
	switch {
	case x.closing:
		out = append(out, http1.ConnectionClose...)
	case x.minor == 0:
		out = append(out, http1.ConnectionKeepAlive...)
	}
	x.d.Out = append(out, http1.CRLF...)
}
