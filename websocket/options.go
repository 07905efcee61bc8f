package websocket

import (
	"context"
	"fmt"
	"time"

	"github.com/dunlinhttp/dunlin/internal/ws"
)

// Options are the settings of WebSockets.
//
// The functions of one connection are never called at the same time. A panic in one is logged and closes the connection with
// 1011.
type Options struct {
	// Open is called when the connection is open.
	Open func(*Conn)

	// Message is called for each message. The connection reads no more while it runs. Without Message, messages are read with
	// Conn.Read, and the connection reads at most one ahead.
	Message func(*Conn, Message)

	// Drain is called when the client has taken all output, after Send has failed with ErrFull.
	Drain func(*Conn)

	// Close is called once, last, when the connection is over. If the client disappears, it has a goroutine of its own.
	Close func(*Conn, End)

	// Serve is called on a goroutine of its own after Open. The connection closes when it returns: with 1000, or with 1011 after
	// an error, which is logged. The context ends with the connection.
	Serve func(context.Context, *Conn) error

	// Subprotocols are the supported subprotocols. The client's first choice among them is used.
	Subprotocols []string

	// Origins are the origins whose pages may open a connection, in addition to that of the request's host: "https://app.example",
	// or "*" for all. Requests without Origin, which browsers always send, are accepted.
	Origins []string

	// MaxMessage is the maximum length of a message from the client, in bytes, also after decompression. Default: 1 MiB.
	MaxMessage int

	// MaxFragments is the maximum number of frames of a message. Default: 1,024.
	MaxFragments int

	// MaxRate is the number of messages a second that a client may send in the long run; ten seconds' worth may come at once.
	// Default: no limit. Pings, pongs and empty fragments are always limited, to 50 a second.
	MaxRate int

	// MaxPending is the number of bytes of output that may wait for the client. A longer message is accepted if nothing waits.
	// Default: 256 KiB.
	MaxPending int

	// PingInterval is the time of silence after which the client is sent a ping, and then the time for any answer. Default: 30 s.
	// Negative: none.
	PingInterval time.Duration

	// Reconnect is the time over which clients should come back, at random, when the server drains. The reason of the close frame
	// says it: "server is shutting down: reconnect within 5000 ms". Default: 5 s.
	Reconnect time.Duration

	// Compress enables permessage-deflate for clients that offer it. Messages of at least 128 bytes are compressed, each alone:
	// no memory is held between messages. Compression by all connections uses at most one processor's tables for each processor.
	Compress bool
}

// The defaults of Options.
const (
	defaultMaxMessage   = 1 << 20
	defaultMaxFragments = 1024
	defaultMaxPending   = 256 << 10
	defaultPing         = 30 * time.Second
	defaultReconnect    = 5 * time.Second
)

func or[T int | time.Duration](value, otherwise T) T {
	if value == 0 {
		return otherwise
	}
	return value
}

func (o *Options) maxMessage() int   { return or(o.MaxMessage, defaultMaxMessage) }
func (o *Options) maxFragments() int { return or(o.MaxFragments, defaultMaxFragments) }
func (o *Options) maxPending() int   { return or(o.MaxPending, defaultMaxPending) }

func (o *Options) reconnect() time.Duration { return max(or(o.Reconnect, defaultReconnect), 0) }

// ping returns the interval of pings, 0 for none.
func (o *Options) ping() time.Duration { return max(or(o.PingInterval, defaultPing), 0) }

// validate panics if the options contradict each other.
func (o *Options) validate() {
	switch {
	case o.Message != nil && o.Serve != nil:
		panic("websocket: Options: Message and Serve exclude each other: Serve reads messages with Conn.Read")
	case o.MaxMessage < 0 || o.MaxFragments < 0 || o.MaxPending < 0 || o.MaxRate < 0:
		panic("websocket: Options: negative limit")
	case len(o.Subprotocols) > 127:
		panic(fmt.Sprintf("websocket: Options: %d subprotocols; at most 127 are possible", len(o.Subprotocols)))
	}
}

// A Kind is the kind of a message.
type Kind uint8

const (
	Text   = Kind(ws.Text)   // UTF-8; messages from clients are checked
	Binary = Kind(ws.Binary) // any bytes
)

// A Message is a message from the client.
type Message struct {
	Kind Kind

	// Data is borrowed until Options.Message returns, and may be changed. That of Conn.Read belongs to the caller.
	Data []byte
}
