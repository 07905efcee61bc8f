package topic

import (
	_ "embed"
	"strings"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/websocket"
)

// Script is the JavaScript client for browsers, an ES module without dependencies. It subscribes over a WebSocket whose messages
// the server passes to [Hub.Handle]. It reconnects with increasing random delays, and resumes. The first lines of the script
// describe its use. Serve it as text/javascript.
//
//go:embed client.js
var Script string

var errClosed = websocket.ErrClosed

// Subscribe subscribes the connection to topics. last is the ID of the last message that the client has, and "" for a new client.
// The subscription continues after last. A new client gets the next messages, and of a keyed topic first the messages of all keys.
// If messages after last are no longer in the log, the client is told to reload its state, and continues as a new client. Subscribe
// makes all subscriptions, or none.
//
// Each message is a text message. Unless Settings.Bare is set, its first line is the ID, a space, and the topic. The client also
// gets "!at " and an ID from which it can resume before its first message, and "!resync " and an ID after it has missed messages.
func (h *Hub) Subscribe(c *websocket.Conn, last string, topics ...string) error {
	f, err := h.feedOf(c)
	if err != nil {
		return err
	}
	return f.subscribe(last, topics)
}

// Unsubscribe ends subscriptions of the connection. After its return no message of the topics is sent, except the rest of a message
// of which the client has a part.
func (h *Hub) Unsubscribe(c *websocket.Conn, topics ...string) {
	if f, err := h.feedOf(c); err == nil {
		f.unsubscribe(topics)
	}
}

// feedOf returns the feed of a connection.
func (h *Hub) feedOf(c *websocket.Conn) (*feed, error) {
	attach := func(peer exchange.Peer, deflate bool) exchange.Feed {
		f := &feed{hub: h, client: peer, as: asFrame}
		if deflate {
			f.as = asDeflated
		}
		return f
	}
	switch f := c.Feed(attach).(type) {
	case *feed:
		if f.hub == h {
			return f, nil
		}
		return nil, errHub
	}
	return nil, errClosed
}

// Handle handles the commands of clients, such as [Script], and reports whether a message was a command:
//
//	!subscribe <ID of the last message, or "-"> <topic> <topic>...
//	!unsubscribe <topic> <topic>...
//
// allow returns an error if the client must not read a topic. Handle subscribes the client to the allowed topics. For each other
// topic it sends the message "!refused ", the topic, a line break, and the error. If the subscription fails, one such message names
// all topics.
func (h *Hub) Handle(c *websocket.Conn, m websocket.Message, allow func(c *websocket.Conn, topic string) error) bool {
	if len(m.Data) == 0 || m.Data[0] != '!' || m.Kind != websocket.Text {
		return false
	}
	words := strings.Fields(string(m.Data))
	switch {
	case words[0] == "!unsubscribe":
		h.Unsubscribe(c, words[1:]...)
	case words[0] == "!subscribe" && len(words) > 1:
		h.request(c, strings.TrimPrefix(words[1], "-"), words[2:], allow)
	default:
		return false
	}
	return true
}

// request subscribes a connection to the topics that allow permits.
func (h *Hub) request(c *websocket.Conn, last string, names []string, allow func(c *websocket.Conn, topic string) error) {
	if err := h.checkNames(names); err != nil {
		refuse(c, names, err)
		return
	}
	allowed := names[:0]
	for _, name := range names {
		if err := allow(c, name); err != nil {
			refuse(c, []string{name}, err)
		} else {
			allowed = append(allowed, name)
		}
	}
	if len(allowed) == 0 {
		return
	}
	if err := h.Subscribe(c, last, allowed...); err != nil {
		refuse(c, allowed, err)
	}
}

// refuse tells a client that a subscription failed. It ignores an error of Send: the client does not read, or its connection is
// closed.
func refuse(c *websocket.Conn, names []string, err error) {
	_ = c.Send(websocket.Text, []byte("!refused "+strings.Join(names, " ")+"\n"+err.Error()))
}
