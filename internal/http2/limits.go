package http2

import "github.com/dunlinhttp/dunlin/internal/hpack"

// Limits bounds the memory that a client can occupy. All numbers must be positive; [DefaultLimits] returns suitable
// values. Goroutines may share a Limits, because the package only reads it.
type Limits struct {
	// Fields limits the decoded fields of a field block.
	Fields hpack.Limits

	// MaxBlock is the maximum size of an encoded field block, in bytes. A longer block ends the connection, because
	// the block is not decoded and the dynamic table would be out of sync. MaxBlock should be several times
	// Fields.MaxList: if a block exceeds Fields.MaxList only, the request gets status 431 and the connection
	// continues.
	MaxBlock int

	// MaxTarget is the maximum size of :path, in bytes. A longer :path gets status 414.
	MaxTarget int

	// MaxStreams is the maximum number of concurrent streams of a connection. A stream counts until its action has
	// returned, even if the stream was reset before.
	MaxStreams int

	// StreamWindow is the number of bytes of a body that a client may send before the server has read any of them. The
	// window doubles up to MaxStreamWindow while the server reads the body as fast as it arrives.
	StreamWindow, MaxStreamWindow int

	// ConnWindow is the window in bytes for all bodies of a connection together. It is at least 65535 and does not
	// grow.
	ConnWindow int

	// DecoderTable and EncoderTable are the maximum sizes of a connection's dynamic tables, in bytes as defined by RFC
	// 7541 §4.1.
	DecoderTable, EncoderTable int

	// ConnectProtocol enables extended CONNECT (RFC 8441).
	ConnectProtocol bool

	// Tokens is the size of a connection's bucket of tokens, which work that serves no request consumes (see
	// [Reason]). TokensPerSecond is the rate at which the bucket is refilled.
	Tokens, TokensPerSecond int

	// CallTokens is the number of tokens whose use makes [Conn.Next] return the event Costly.
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
