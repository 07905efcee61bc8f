package websocket_test

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/ws"
	"github.com/dunlinhttp/dunlin/websocket"
)

const deflate = "permessage-deflate"

func packed(s string) string { return string(ws.AppendDeflated(nil, []byte(s), 15)) }

// A conversation has everything that a client sends after the handshake, and everything that the server sends until it
// closes.
type conversation struct {
	name string
	in   []string
	out  []string
}

func f1(first byte, payload string) string { return string([]byte{first}) + payload }

var ok = closed(websocket.Normal, "")

var conversations = []conversation{
	{"messages of all lengths", []string{
		frame(text, ""), frame(text, "hello"), frame(bin, strings.Repeat("b", 125)), frame(bin, strings.Repeat("c", 126)),
		frame(text, strings.Repeat("d", 1<<16-1)), frame(bin, strings.Repeat("e", 1<<16)), bye,
	}, []string{
		f1(text, ""), f1(text, "hello"), f1(bin, strings.Repeat("b", 125)), f1(bin, strings.Repeat("c", 126)),
		f1(text, strings.Repeat("d", 1<<16-1)), f1(bin, strings.Repeat("e", 1<<16)), ok,
	}},
	{"fragments, with a ping between", []string{
		frame(1, "he"), frame(ping, "are you there"), frame(0, "l"), frame(0, ""), frame(cont, "lo"), frame(2, ""), frame(cont, "\xff"), bye,
	}, []string{f1(pong, "are you there"), f1(text, "hello"), f1(bin, "\xff"), ok}},
	{"a character across fragments", []string{frame(1, "\xe2\x82"), frame(cont, "\xac"), bye}, []string{f1(text, "€"), ok}},
	{"pings and pongs", []string{frame(ping, ""), frame(pong, "unasked"), frame(ping, strings.Repeat("p", 125)), bye},
		[]string{f1(pong, ""), f1(pong, strings.Repeat("p", 125)), ok}},

	{"frame without a mask", []string{frame(text, "a"), "\x81\x01b"}, []string{f1(text, "a"), closed(1002, "client frame without a mask")}},
	{"reserved bit 1", []string{frame(text|rsv1, "a")}, []string{closed(1002, "reserved bit set in frame header")}},
	{"reserved bit 2", []string{frame(text|0x20, "a")}, []string{closed(1002, "reserved bit set in frame header")}},
	{"reserved bit 3", []string{frame(text|0x10, "a")}, []string{closed(1002, "reserved bit set in frame header")}},
	{"reserved bit of a ping", []string{frame(ping|rsv1, "a")}, []string{closed(1002, "reserved bit set in frame header")}},
	{"reserved opcode", []string{frame(fin|3, "a")}, []string{closed(1002, "reserved opcode")}},
	{"reserved control opcode", []string{frame(fin|11, "a")}, []string{closed(1002, "reserved opcode")}},
	{"fragmented ping", []string{frame(9, "a")}, []string{closed(1002, "fragmented control frame")}},
	{"long ping", []string{frame(ping, strings.Repeat("a", 126))}, []string{closed(1002, "control frame longer than 125 bytes")}},
	{"length in too many bytes", []string{"\x82\xfe\x00\x05\x01\x02\x03\x04"}, []string{closed(1002, "invalid encoding of the payload length")}},
	{"length of 2^63", []string{"\x82\xff\x80\x00\x00\x00\x00\x00\x00\x00"}, []string{closed(1002, "invalid encoding of the payload length")}},
	{"continuation of nothing", []string{frame(cont, "a")}, []string{closed(1002, "wrong order of fragments")}},
	{"message within a message", []string{frame(1, "a"), frame(text, "b")}, []string{closed(1002, "wrong order of fragments")}},

	{"text that is not UTF-8", []string{frame(text, "\xff")}, []string{closed(1007, "text is not UTF-8")}},
	{"text that ends in a character", []string{frame(text, "\xe2\x82")}, []string{closed(1007, "text is not UTF-8")}},
	{"fragments that end in a character", []string{frame(1, "a"), frame(cont, "\xe2\x82")}, []string{closed(1007, "text is not UTF-8")}},
	{"invalid fragment before the end", []string{frame(1, "\xe2\x82"), frame(0, "a")}, []string{closed(1007, "text is not UTF-8")}},
	{"invalid byte before the end of a frame", []string{frame(text, "\xffabcdef")[:8]}, []string{closed(1007, "text is not UTF-8")}},

	{"announced message is too long", []string{frame(text, "a"), "\x82\xff\x00\x00\x00\x01\x00\x00\x00\x00\x01\x02\x03\x04"},
		[]string{f1(text, "a"), closed(1009, "message is too long")}},
	{"fragments are too long", []string{frame(2, strings.Repeat("a", 60_000)), frame(cont, strings.Repeat("a", 5_537))},
		[]string{closed(1009, "message is too long")}},
	{"too many fragments", []string{frame(1, "a"), frame(0, "a"), frame(0, "a"), frame(0, "a"), frame(cont, "a")},
		[]string{closed(1008, "too many fragments")}},

	{"close without a code", []string{frame(closes, "")}, []string{f1(closes, "")}},
	{"close with a code of applications", []string{frame(closes, closing(4999, "so")), frame(text, "ignored")}, []string{closed(4999, "")}},
	{"close code 1005", []string{frame(closes, closing(1005, ""))}, []string{closed(1002, "invalid close code")}},
	{"close code 2999", []string{frame(closes, closing(2999, ""))}, []string{closed(1002, "invalid close code")}},
	{"close of one byte", []string{frame(closes, "\x03")}, []string{closed(1002, "close frame of one byte")}},
	{"close reason is not UTF-8", []string{frame(closes, closing(1000, "\xff"))}, []string{closed(1007, "close reason is not UTF-8")}},
	{"close between fragments", []string{frame(1, "a"), bye}, []string{ok}},
}

var compressed = []conversation{
	{"compressed messages", []string{frame(text|rsv1, packed("hello")), frame(bin|rsv1, packed("")), frame(text, "clear"), bye},
		[]string{f1(text, "hello"), f1(bin, ""), f1(text, "clear"), ok}},
	{"long messages are answered compressed", []string{frame(text|rsv1, packed(strings.Repeat("ab", 500))), bye},
		[]string{f1(text|rsv1, packed(strings.Repeat("ab", 500))), ok}},
	{"compressed fragments", []string{frame(1|rsv1, packed("hello")[:3]), frame(ping, ""), frame(cont, packed("hello")[3:]), bye},
		[]string{f1(pong, ""), f1(text, "hello"), ok}},
	{"reserved bit of a continuation", []string{frame(1|rsv1, "a"), frame(cont|rsv1, "b")}, []string{closed(1002, "reserved bit set in frame header")}},
	{"bomb", []string{frame(bin|rsv1, packed(strings.Repeat("\x00", 8<<20)))}, []string{closed(1009, "message is longer than allowed after decompression")}},
	{"longest message", []string{frame(bin|rsv1, packed(strings.Repeat("\x00", 1<<16))), bye},
		[]string{f1(bin|rsv1, packed(strings.Repeat("\x00", 1<<16))), ok}},
	{"invalid blocks", []string{frame(bin|rsv1, "\x07")}, []string{closed(1007, "invalid compressed message")}},
	{"compressed text is not UTF-8", []string{frame(text|rsv1, packed("\xff"))}, []string{closed(1007, "text is not UTF-8")}},
}

func TestConversations(t *testing.T) {
	o := &websocket.Options{
		MaxMessage: 1 << 16, MaxFragments: 4, Compress: true,
		Message: func(c *websocket.Conn, m websocket.Message) {
			if err := c.Send(m.Kind, m.Data); err != nil {
				panic(err)
			}
		},
	}
	onServers(t, dunlin.Config{}, o, func(t *testing.T, _ *dunlin.App, open func(...string) *client) {
		for _, c := range conversations {
			t.Run(c.name, func(t *testing.T) {
				c.hold(t, open(), false)
				c.hold(t, open(), true)
			})
		}
		for _, c := range compressed {
			t.Run(c.name, func(t *testing.T) {
				c.hold(t, open("Sec-WebSocket-Extensions", deflate), false)
				c.hold(t, open("Sec-WebSocket-Extensions", deflate), true)
			})
		}
	})
}

// hold sends all at once, or short input byte by byte.
func (v *conversation) hold(t *testing.T, c *client, slowly bool) {
	t.Helper()
	in := strings.Join(v.in, "")
	if slowly && len(in) > 300 {
		return
	}
	go func() { // the server may close before it has read all
		for n := len(in); len(in) > 0; in = in[n:] {
			if slowly {
				n = 1
			}
			if _, err := io.WriteString(c.Conn, in[:n]); err != nil {
				return
			}
		}
	}()
	if got := c.rest(); !slices.Equal(got, v.out) {
		t.Errorf("got %q, want %q", shorts(got), shorts(v.out))
	}
}

func shorts(frames []string) (s []string) {
	for _, f := range frames {
		s = append(s, short(f))
	}
	return s
}
