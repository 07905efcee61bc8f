//go:build linux

package loophttp

import (
	"net/http"
	"strings"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/http1"
	"github.com/dunlinhttp/dunlin/internal/view"
)

// respond appends a settled response to the driver's output and lets go of
// what the response owned.
func (x *wire) respond(resp *exchange.Answer) {
	if resp.Kind() == exchange.Sent {
		resp.Release()
		return
	}
	body, d, status := resp.Body, x.d, resp.Status()
	if base, all := resp.Rendered(); all && len(body) < ownedBody && !resp.Announces() && x.minor != 0 && !x.undated && !x.closing &&
		http1.BodyAllowed(x.head.Method, status) { // as most are
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
	case len(body) >= ownedBody && view.Within(body, x.s.Payload) && cap(x.s.Payload) > exchange.KeptPayload:
		d.WriteOwned(x.call.PassOn(body), nil)
		resp.Release()
	case len(body) < ownedBody || x.viewsRequest(body):
		d.Out = append(d.Out, body...)
		resp.Release()
	case resp.Own() != nil:
		own, b := resp.Lend() // with its capacity, which is what pending output holds
		d.WriteOwned(b, own)
	default:
		d.WriteOwned(view.Bytes(body), nil)
	}
}

// appendHead appends the head of a response: status line, date, the response's
// headers, framing. length is that of the body, -1 when it is not known.
func (x *wire) appendHead(resp *exchange.Answer, length int64) {
	out := x.d.Out
	status := resp.Status()
	if x.minor == 0 {
		out = http1.AppendStatusLine10(out, status)
	} else {
		out = http1.AppendStatusLine(out, status)
	}
	if !x.undated && !resp.Dated() {
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
				continue // it describes a body that is not sent; net/http leaves it out, too
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
	if x.head.Method == http1.MethodConnect && !http1.BodyAllowed(x.head.Method, status) {
		x.closing = true // a proxy may take it for a tunnel, and pass on bytes that it does not check
	}
	switch {
	case length >= 0:
		if http1.LengthAllowed(x.head.Method, status) && status != http.StatusNotModified {
			out = http1.AppendContentLength(out, length)
		}
	case !http1.BodyAllowed(x.head.Method, status):
		// Nothing follows, and nothing is known of what would.
	case x.minor == 0:
		x.closing = true // the end of the connection is the end of the body
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
