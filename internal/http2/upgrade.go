package http2

import (
	"github.com/dunlinhttp/dunlin/internal/hpack"
	"github.com/dunlinhttp/dunlin/internal/view"
)

// ValidSettings reports whether a payload of SETTINGS from an HTTP2-Settings field is valid.
func ValidSettings(payload []byte) bool {
	if len(payload)%settingLength != 0 || len(payload) > maxFrame {
		return false
	}
	var c Conn
	c.encoder.Init(0)
	return c.settings(payload) == noProblem
}

// A Block is the field block of a cleartext request received over HTTP/1.1. It uses no table.
type Block struct {
	Bytes []byte
	Size  int // size as in hpack.Limits.MaxList
}

// SetTarget begins a block with the pseudo-header fields.
func (b *Block) SetTarget(method, authority, path []byte) {
	b.Add(":method", view.String(method))
	b.Add(":scheme", "http")
	b.Add(":authority", view.String(authority))
	b.Add(":path", view.String(path))
}

// Add adds a field; name is in lower case.
func (b *Block) Add(name, value string) {
	var e hpack.Encoder
	e.Init(0)
	b.Bytes = e.AppendNever(b.Bytes, name, value)
	b.Size += len(name) + len(value) + fieldOverhead
}

// fieldOverhead is the additional size of a field in MaxList (RFC 9113 §6.5.2), in bytes.
const fieldOverhead = 32

// upgradeWindow is the number of body bytes sent before the client has sent its preface.
const upgradeWindow = 8 << 10

// Upgrade begins a connection with a request received over HTTP/1.1 (RFC 7540 §3.2). settings must be valid by
// ValidSettings, block comes from a Block. The request is stream 1, without further input. Call Upgrade once, between
// Init and the first Next. Its results are those of Next, whose input still begins with the client's preface.
//
// Until the preface arrives, the answer is limited to a size that certainly fits into a client's buffer for an HTTP/1.1
// response: curl accepts at most 32 KB after a 101.
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
