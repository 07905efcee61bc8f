package http2

import "github.com/dunlinhttp/dunlin/internal/hpack"

// Limits bounds what a client can make the server hold. All fields but the switches must
// be positive; [DefaultLimits] is a good start. A Limits is only read, so one value may be
// shared by any number of goroutines.
type Limits struct {
	// Fields bounds what is decoded of a field block.
	Fields hpack.Limits

	// MaxBlock is the longest field block, in bytes as it is sent; beyond it the connection
	// ends, since what cannot be decoded leaves the dynamic table behind. It is to be several times Fields.MaxList:
	// a block between the two is answered with 431, and its client goes on.
	MaxBlock int

	// MaxTarget is the longest :path, in bytes; beyond it the answer is 414.
	MaxTarget int

	// MaxStreams is how many streams a client may have at once. A place is free when its
	// action has returned, and not before, whoever has reset the stream.
	MaxStreams int

	// StreamWindow is how much of a body a client may send before anything of it
	// is read, in bytes. It doubles up to MaxStreamWindow for a body that is read as it comes.
	StreamWindow, MaxStreamWindow int

	// ConnWindow is the same for all bodies of a connection together; it is 65535 at least,
	// and does not grow.
	ConnWindow int

	// DecoderTable and EncoderTable are the most that the dynamic tables of a connection
	// may have, in the bytes of RFC 7541 §4.1.
	DecoderTable, EncoderTable int

	// ConnectProtocol enables extended CONNECT (RFC 8441).
	ConnectProtocol bool

	// Tokens is how many tokens a connection has at most, and TokensPerSecond how many come
	// again; see [Reason].
	Tokens, TokensPerSecond int

	// CallTokens is after how many of them a call of [Conn.Next] returns with the event Costly.
	CallTokens int
}

// DefaultLimits returns limits that ordinary browsers, proxies and API clients never meet.
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
