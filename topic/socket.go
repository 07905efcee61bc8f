package topic

import (
	"strings"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/websocket"
)

var errClosed = websocket.ErrClosed

// Subscribe subscribes the connection to topics. last is the ID of the last message that the client has, from which the
// subscription continues, or "" for a new client: it gets the next messages, and of a keyed topic all keys. If messages after last
// are not in the log any more, the client is told to load its state anew, and is as a new one. Either all subscriptions are made,
// or none.
//
// Each message is a text. Unless Settings.Bare is set, its first line is the ID, a space, and the topic; two more messages are
// sent: "!at " and an ID, from which the client can resume if nothing else comes, and "!resync " and an ID after a loss.
func (h *Hub) Subscribe(c *websocket.Conn, last string, topics ...string) error {
	f, err := h.feedOf(c)
	if err != nil {
		return err
	}
	return f.subscribe(last, topics)
}

// Unsubscribe ends subscriptions of the connection. When it returns, no more messages of the topics are sent, except for one of
// which the client has a part.
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

// Handle handles a message in which a client asks for topics, as the JavaScript client of the package does, and reports whether it
// was one:
//
//	!subscribe <ID of the last message, or "-"> <topic> <topic>...
//	!unsubscribe <topic> <topic>...
//
// allow decides whether the client may have a topic. For each topic that it may not have, or for all if the subscription is not
// possible, the answer is the message "!refused ", the topic or topics, a line break, and the error. It subscribes to the others.
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

// request subscribes a connection to the topics that it may have.
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

// refuse tells a client that it does not get topics, unless it does not read or is gone.
func refuse(c *websocket.Conn, names []string, err error) {
	_ = c.Send(websocket.Text, []byte("!refused "+strings.Join(names, " ")+"\n"+err.Error()))
}
