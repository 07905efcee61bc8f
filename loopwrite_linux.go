package dunlin

import (
	"net/http"
	"strings"

	"github.com/dunlinhttp/dunlin/internal/http1"
)

// respond appends a settled response to the driver's output and lets go of
// what the response owned.
func (x *loopExchange) respond(resp *Response) {
	if resp.meta.kind() == kindSent {
		x.release(resp)
		return
	}
	body := resp.body
	x.appendHead(resp, resp.announced())
	switch {
	case body == "" || !http1.BodyAllowed(x.head.Method, resp.meta.status()):
		x.release(resp)
	case len(body) >= ownedBody && x.gathered != nil && within(body, x.gathered.body):
		x.d.WriteOwned(viewBytes(body), x.gathered)
		x.gathered = nil
		x.release(resp)
	case len(body) >= ownedBody && within(body, x.request.payload) && cap(x.request.payload) > maxKept:
		x.d.WriteOwned(x.request.passOn(body), nil)
		x.release(resp)
	case len(body) < ownedBody || x.viewsRequest(body):
		x.d.Out = append(x.d.Out, body...)
		x.release(resp)
	case resp.extra() != nil:
		own := resp.on.x
		own.used = resp.meta.fields()
		b := viewBytes(body)
		if resp.ownsBody() {
			b = own.buf[:len(body)] // with its capacity, which is what pending output holds
		}
		x.d.WriteOwned(b, own)
	default:
		x.d.WriteOwned(viewBytes(body), nil)
	}
}

func (x *loopExchange) release(resp *Response) {
	if own := resp.extra(); own != nil {
		own.release(resp.meta.fields())
	}
}

// Release gives the extra back when the engine has sent the body it owns.
func (x *extra) Release() { x.release(x.used) }

// appendHead appends the head of a response: status line, date, the response's
// headers, framing. length is that of the body, -1 when it is not known.
func (x *loopExchange) appendHead(resp *Response, length int64) {
	out := x.d.Out
	status := resp.meta.status()
	if x.minor == 0 {
		out = http1.AppendStatusLine10(out, status)
	} else {
		out = http1.AppendStatusLine(out, status)
	}
	if x.date == nil {
		x.date = new(http1.DateCache)
	}
	out = x.date.AppendField(out, x.d.Unix())
	block, own := resp.base(), resp.fields()
	if len(own) == 1 && own[0].block != nil {
		block, own = own[0].block.over(block), nil
	}
	switch {
	case len(own) > 0 || status == http.StatusNotModified:
		for name, value := range resp.headers {
			if status == http.StatusNotModified && strings.EqualFold(name, "Content-Type") {
				continue // it describes a body that is not sent; net/http leaves it out, too
			}
			out = http1.AppendField(out, name, value)
		}
	case block != nil:
		out = append(out, block.wire...)
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
