package http2

import "github.com/dunlinhttp/dunlin/internal/hpack"

// Limits bounds the memory that a client can occupy. All numbers must be positive; use [DefaultLimits] as a start.
// A Limits is read only, so goroutines may share it.
type Limits struct {
	// Fields limits the decoded fields of a block.
	Fields hpack.Limits

	// MaxBlock is the maximum size of a field block as sent, in bytes. A longer one ends the connection, since the
	// dynamic table would get out of sync without decoding it. It should be several times Fields.MaxList: a block
	// between the two gets a 431, and the connection continues.
	MaxBlock int

	// MaxTarget is the maximum size of :path, in bytes. A longer one gets a 414.
	MaxTarget int

	// MaxStreams is the maximum number of concurrent streams of a client. A stream counts until its action has
	// returned, even if the stream was reset before.
	MaxStreams int

	// StreamWindow is the number of bytes of a body that a client may send before any is read. It doubles up to
	// MaxStreamWindow while the body is read as fast as it arrives.
	StreamWindow, MaxStreamWindow int

	// ConnWindow is the window for all bodies of a connection together. It is at least 65535 and does not grow.
	ConnWindow int

	// DecoderTable and EncoderTable are the maximum sizes of a connection's dynamic tables, in bytes as defined by RFC
	// 7541 §4.1.
	DecoderTable, EncoderTable int

	// ConnectProtocol enables extended CONNECT (RFC 8441).
	ConnectProtocol bool

	// Tokens is the size of a connection's token bucket, which abusive behavior drains (see [Reason]). TokensPerSecond
	// refills it.
	Tokens, TokensPerSecond int

	// CallTokens is the number of spent tokens after which [Conn.Next] returns the event Costly.
	CallTokens int
}

// DefaultLimits returns limits that ordinary browsers, proxies and API clients do not reach.
func DefaultLimits() Limits {
	return Limits{
		Fields:          hpack.Limits{MaxList: 16 << 10, MaxFields: 100, MaxWork: 128 << 10},
		MaxBlock:        64 << 10,
		MaxTarget:       8 << 10,
		MaxStreams:      128,
		StreamWindow:    32 << 10,
		MaxStreamWindow: 1 << 20,
		ConnWindow:      1 << 20,
		DecoderTable:    hpack.DefaultTableSize,
		EncoderTable:    2048,
		Tokens:          2000,
		TokensPerSecond: 200,
		CallTokens:      64,
	}
}
