package http2

import (
	"github.com/dunlinhttp/dunlin/internal/hpack"
	"github.com/dunlinhttp/dunlin/internal/view"
)

// ValidSettings reports whether payload, the decoded value of an HTTP2-Settings field, is valid as the payload of a
// SETTINGS frame.
func ValidSettings(payload []byte) bool {
	if len(payload)%settingLength != 0 || len(payload) > maxFrame {
		return false
	}
	var c Conn
	c.encoder.Init(0)
	return c.settings(payload) == noProblem
}

// A Block is the field block of a request that was received over HTTP/1.1. It uses no dynamic table.
type Block struct {
	Bytes []byte
	Size  int // decoded size, as in hpack.Limits.MaxList
}

// SetTarget begins the block with the pseudo-header fields.
func (b *Block) SetTarget(method, authority, path []byte) {
	b.Add(":method", view.String(method))
	b.Add(":scheme", "http")
	b.Add(":authority", view.String(authority))
	b.Add(":path", view.String(path))
}

// Add adds a field. name must be in lower case.
func (b *Block) Add(name, value string) {
	var e hpack.Encoder
	e.Init(0)
	b.Bytes = e.AppendNever(b.Bytes, name, value)
	b.Size += len(name) + len(value) + fieldOverhead
}

// fieldOverhead is the number of bytes that a field counts for in MaxList in addition to its name and value (RFC 9113
// §6.5.2).
const fieldOverhead = 32

// upgradeWindow is the number of bytes of the answer's body that may be sent before the client has sent its preface.
const upgradeWindow = 8 << 10

// Upgrade begins a connection with a request that was received over HTTP/1.1 (RFC 7540 §3.2). [ValidSettings] must have
// accepted settings, and block must come from a [Block]. The request becomes stream 1, whose input is complete. Call
// Upgrade once, between Init and the first Next. The results are those of Next. The input of Next still begins with the
// client's preface.
//
// Until the preface arrives, Upgrade limits the body of the answer, so that the answer fits into the client's buffer
// for an HTTP/1.1 response. curl, for example, accepts at most 32 KB after status 101.
func (c *Conn) Upgrade(settings, block []byte) (ev Event, err error) {
	c.withheld = c.sendWindow - upgradeWindow
	c.sendWindow = upgradeWindow
	p := c.settings(settings)
	if p == noProblem {
		p = c.fields(1, block, true, false, &ev)
	}
	if p != noProblem {
		return Event{}, c.fail(p)
	}
	return ev, nil
}
