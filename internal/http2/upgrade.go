package http2

import (
	"github.com/dunlinhttp/dunlin/internal/hpack"
	"github.com/dunlinhttp/dunlin/internal/view"
)

// ValidSettings reports whether a payload of SETTINGS, as a client has sent it in HTTP2-Settings, can be taken.
func ValidSettings(payload []byte) bool {
	if len(payload)%settingLength != 0 || len(payload) > maxFrame {
		return false
	}
	var c Conn
	c.encoder.Init(0)
	return c.settings(payload) == noProblem
}

// A Block is the field block of a request in clear text that has come by HTTP/1.1, in no table's words.
type Block struct {
	Bytes []byte
	Size  int // as hpack.Limits.MaxList counts it
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

// fieldOverhead is what a field counts for beside its bytes (RFC 9113 §6.5.2).
const fieldOverhead = 32

// upgradeWindow is how many bytes of bodies are sent before the client has spoken HTTP/2.
const upgradeWindow = 8 << 10

// Upgrade begins with a request that has come by HTTP/1.1 (RFC 7540 §3.2): settings are what ValidSettings has found
// good, block is that of a Block. It is stream 1, of which the client sends no more. Upgrade is called once, between
// Init and the first Next; its results are as those of Next, whose input begins with the client's preface all the same.
//
// Until that has come no more of the answer is sent than fits with certainty into what clients have for a response of
// HTTP/1.1: what curl finds behind 101 may be no more than its buffer of 32 KB takes.
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
