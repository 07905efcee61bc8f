package websocket

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/dunlinhttp/dunlin/internal/ws"
)

// Options are the settings of WebSockets.
//
// The event functions of a connection are called one at a time. A panic in a function is logged and closes the connection with
// 1011.
type Options struct {
	// Open is called first, when the WebSocket is open.
	Open func(*Conn)

	// Message is called for each message. While it runs, no further input is read. Without Message, Conn.Read returns the messages;
	// the connection then reads at most one message ahead.
	Message func(*Conn, Message)

	// Drain is called after Send has failed with ErrFull, when the client has received all output.
	Drain func(*Conn)

	// Close is called once, as the last function, at the end of the connection. If the client disappears, Close is called on a new
	// goroutine.
	Close func(*Conn, End)

	// Serve is called on a new goroutine after Open. Its return closes the connection: with 1000, or with 1011 after an error, which
	// is logged. The context ends with the connection.
	Serve func(context.Context, *Conn) error

	// Subprotocols are the supported subprotocols. The client's first choice among them is used.
	Subprotocols []string

	// Origins are the origins whose pages may open a WebSocket, such as "https://app.example", or "*" for all. The origin of the
	// request's host is always allowed. Requests without Origin are accepted: browsers always send it.
	Origins []string

	// MaxMessage is the maximum length of a message from the client, in bytes, also after decompression. Default: 1 MiB.
	MaxMessage int

	// MaxFragments is the maximum number of frames of a message. Default: 1,024.
	MaxFragments int

	// MaxRate is the maximum average number of messages that a client may send in a second. The messages of ten seconds may come at
	// once. Default: no limit. Pings, pongs and empty fragments are always limited, to 50 a second.
	MaxRate int

	// MaxPending is the maximum number of bytes of output that wait for the client. A longer message is accepted if no output waits.
	// Default: 256 KiB.
	MaxPending int

	// PingInterval is the time without input after which the client is sent a ping. The connection is closed if the client then
	// sends nothing for the same time. Default: 30 s. Negative: no pings.
	PingInterval time.Duration

	// Reconnect is the time within which clients should reconnect, at random, after a drain of the server. The reason of the close
	// frame contains it: "server is shutting down: reconnect within 5000 ms", or "server is restarting:" at a
	// restart. Default: 5 s.
	Reconnect time.Duration

	// Compress enables permessage-deflate for clients that offer it. Messages of at least 128 bytes are compressed, each
	// independently, so that no memory is held between messages. All connections together use at most one compressor (800 KB) for
	// each processor.
	Compress bool
}

// complete replaces zero values by the defaults. No pings, and no time to reconnect, are 0 then.
func (o *Options) complete() {
	o.MaxMessage = cmp.Or(o.MaxMessage, 1<<20)
	o.MaxFragments = cmp.Or(o.MaxFragments, 1024)
	o.MaxPending = cmp.Or(o.MaxPending, 256<<10)
	o.PingInterval = max(cmp.Or(o.PingInterval, 30*time.Second), 0)
	o.Reconnect = max(cmp.Or(o.Reconnect, 5*time.Second), 0)
}

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

	// Data is borrowed until Options.Message returns, and may be changed. The data of a message from Conn.Read belongs to the
	// caller.
	Data []byte
}
