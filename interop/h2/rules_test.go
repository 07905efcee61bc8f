package h2_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// The results of violations: the code of GOAWAY for the connection, the code of RST_STREAM for a stream, or an answer.
const (
	connProtocol        = "connection PROTOCOL_ERROR"
	connSize            = "connection FRAME_SIZE_ERROR"
	connFlow            = "connection FLOW_CONTROL_ERROR"
	connClosed          = "connection STREAM_CLOSED"
	connCoding          = "connection COMPRESSION_ERROR"
	connEnhanceYourCalm = "connection ENHANCE_YOUR_CALM"
	connCut             = "connection closed" // without a word, which RFC 9113 section 5.4.1 allows
	malformed           = "stream PROTOCOL_ERROR"
	badRequest          = "stream 400"
	tooLarge            = "stream 431"
	streamFlow          = "stream FLOW_CONTROL_ERROR"
	streamClosed        = "stream STREAM_CLOSED"
	streamSize          = "stream FRAME_SIZE_ERROR"
	ignored             = "ignored"
)

// A violation is something that a client must not do, or something unusual that it may do.
type violation struct {
	section, what string
	in            string
	stream        uint32   // that it is about; 0: the connection
	allowed       []string // allowed outcomes
	netHTTP       string   // net/http's outcome, which deviates from the RFC without harm
}

// Each is on a connection where stream 1 is open, 3 half-closed by the client, 5 closed by both and 7 reset by the client. A
// stream error does not change the connection.
var violations = []violation{
	{"4.2", "a frame beyond SETTINGS_MAX_FRAME_SIZE", head(tData, 0, 1, 1<<20+1), 0, []string{connSize}, ""},
	{"4.2", "HEADERS beyond it", head(tHeaders, endHeaders, 9, 1<<20+1), 0, []string{connSize}, ""},
	{"4.3", "a block that cannot be decoded", headers(9, endStream, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), 0, []string{connCoding}, ""},
	{"4.3", "an index without an entry", headers(9, endStream, "\xbe"), 0, []string{connCoding}, ""},
	{"4.3", "trailers that cannot be decoded", headers(1, endStream, "\xbe"), 0, []string{connCoding}, ""},
	{"4.3", "a block that ends within a field", headers(9, endStream, request("GET", "/hello")+"\x00\x05ab"), 0, []string{connCoding}, ""},
	{"4.3", "Huffman coding with EOS", headers(9, endStream, request("GET", "/hello")+"\x00\x01a\x84\xff\xff\xff\xff"), 0, []string{connCoding}, ""},
	{"4.3", "a table larger than was allowed", headers(9, endStream, "\x3f\xe2\xff\x03"+request("GET", "/hello")), 0, []string{connCoding}, ""},
	{"4.3", "a table size update after a field", headers(9, endStream, request("GET", "/hello")+"\x20"), 9, []string{connCoding}, "stream 200"},

	{"5.1", "DATA on an idle stream", frame(tData, 0, 9, "a"), 0, []string{connProtocol}, ""},
	{"5.1", "RST_STREAM on an idle stream", frame(tReset, 0, 9, u32(cancel)), 0, []string{connProtocol}, ""},
	{"5.1", "WINDOW_UPDATE on an idle stream", frame(tWindow, 0, 9, u32(8)), 0, []string{connProtocol}, ""},
	{"5.1", "CONTINUATION on an idle stream", frame(tContinuation, endHeaders, 9, request("GET", "/")), 0, []string{connProtocol}, ""},
	{"5.1", "DATA on a half-closed stream", frame(tData, 0, 3, "a"), 3, []string{streamClosed, connClosed}, ""},
	{"5.1", "HEADERS on a half-closed stream", get(3, "/hello"), 3, []string{streamClosed, connClosed}, ""},
	{"5.1", "DATA on a closed stream", frame(tData, 0, 5, "a"), 5, []string{streamClosed, connClosed}, ""},
	{"5.1", "HEADERS on a closed stream", get(5, "/hello"), 5, []string{connClosed, streamClosed, connProtocol}, ""},
	{"5.1", "DATA on a stream that the client has reset", frame(tData, 0, 7, "a"), 7, []string{streamClosed, connClosed, ignored}, ""},
	{"5.1", "HEADERS on a stream that the client has reset", get(7, "/hello"), 7, []string{connClosed, streamClosed, connProtocol}, ""},
	{"5.1", "WINDOW_UPDATE on a closed stream", frame(tWindow, 0, 5, u32(8)), 5, []string{ignored}, ""},
	{"5.1", "RST_STREAM on a closed stream", frame(tReset, 0, 5, u32(cancel)), 5, []string{ignored}, ""},
	{"5.1", "PRIORITY on a closed stream", frame(tPriority, 0, 5, u32(0)+"x"), 5, []string{ignored}, ""},
	{"5.1", "PRIORITY on an idle stream", frame(tPriority, 0, 9, u32(0)+"x"), 0, []string{ignored}, ""},
	{"5.1.1", "a stream with an even number", get(10, "/hello"), 0, []string{connProtocol}, ""},
	{"5.1.1", "a skipped stream", get(11, "/hello") + get(9, "/hello"), 0, []string{connProtocol}, ""},
	{"5.3.2", "a stream that depends on itself", frame(tPriority, 0, 1, u32(1)+"x"), 1, []string{malformed, ignored}, ""},
	{"5.5", "a frame of an unknown type", frame(tUnknown, 0xff, 0, "who knows") + frame(tUnknown, 0xff, 1, "") + frame(tUnknown, 0, 9, ""), 1, []string{ignored}, ""},
	{"5.5", "an unknown setting", frame(tSettings, 0, 0, setting(0xabc, 7)), 0, []string{ignored}, ""},
	{"4.1", "unknown flags", frame(tPing, 0xfe, 0, "unflaged"), 0, []string{ignored}, ""},
	{"4.1", "a reserved bit", frame(tData, 0, 1<<31|1, "a"), 1, []string{ignored}, ""},

	{"6.1", "DATA on stream 0", frame(tData, 0, 0, "a"), 0, []string{connProtocol}, ""},
	{"6.1", "DATA with nothing but padding too long", frame(tData, padded, 1, "\x01"), 0, []string{connProtocol}, ""},
	{"6.1", "DATA with padding too long", frame(tData, padded, 1, "\x05abcd"), 0, []string{connProtocol}, ""},
	{"6.1", "DATA without its length of padding", frame(tData, padded, 1, ""), 0, []string{connSize, connProtocol, connCut}, ""},
	{"6.2", "HEADERS on stream 0", get(0, "/hello"), 0, []string{connProtocol}, ""},
	{"6.2", "HEADERS with padding too long", headers(9, padded, "\x7f"+"\x82\x86"), 9, []string{connProtocol}, malformed},
	{"6.2", "HEADERS without its priority", headers(9, withPriority, "abcd"), 0, []string{connSize, connProtocol, connCut}, ""},
	{"6.2", "PING within a field block", frame(tHeaders, 0, 9, request("GET", "/")) + frame(tPing, 0, 0, "12345678"), 0, []string{connProtocol}, ""},
	{"6.2", "HEADERS of another stream within a field block", frame(tHeaders, 0, 9, request("GET", "/")) + get(11, "/"), 0, []string{connProtocol}, ""},
	{"6.2", "an unknown frame within a field block", frame(tHeaders, 0, 9, request("GET", "/")) + frame(tUnknown, 0, 9, ""), 0, []string{connProtocol}, ""},
	{"6.3", "PRIORITY on stream 0", frame(tPriority, 0, 0, "12345"), 0, []string{connProtocol}, ""},
	{"6.3", "PRIORITY of four bytes", frame(tPriority, 0, 1, "1234"), 1, []string{streamSize, connSize}, ""},
	{"6.4", "RST_STREAM on stream 0", frame(tReset, 0, 0, u32(8)), 0, []string{connProtocol}, ""},
	{"6.4", "RST_STREAM of three bytes", frame(tReset, 0, 1, "abc"), 0, []string{connSize}, ""},
	{"6.5", "SETTINGS on a stream", frame(tSettings, 0, 1, ""), 0, []string{connProtocol}, ""},
	{"6.5", "SETTINGS of five bytes", frame(tSettings, 0, 0, "12345"), 0, []string{connSize}, ""},
	{"6.5", "an acknowledgement with a payload", frame(tSettings, ack, 0, setting(setPush, 0)), 0, []string{connSize}, ""},
	{"6.5.2", "SETTINGS_ENABLE_PUSH of 2", frame(tSettings, 0, 0, setting(setPush, 2)), 0, []string{connProtocol}, ""},
	{"6.5.2", "SETTINGS_INITIAL_WINDOW_SIZE of 2^31", frame(tSettings, 0, 0, setting(setWindow, 1<<31)), 0, []string{connFlow}, ""},
	{"6.5.2", "SETTINGS_MAX_FRAME_SIZE of 16383", frame(tSettings, 0, 0, setting(setFrame, 16383)), 0, []string{connProtocol}, ""},
	{"6.5.2", "SETTINGS_MAX_FRAME_SIZE of 2^24", frame(tSettings, 0, 0, setting(setFrame, 1<<24)), 0, []string{connProtocol}, ""},
	{"6.6", "PUSH_PROMISE", frame(tPush, endHeaders, 1, u32(2)+request("GET", "/")), 0, []string{connProtocol}, ""},
	{"6.7", "PING on a stream", frame(tPing, 0, 1, "12345678"), 0, []string{connProtocol}, ""},
	{"6.7", "PING of seven bytes", frame(tPing, 0, 0, "1234567"), 0, []string{connSize}, ""},
	{"6.7", "a reply to no PING", frame(tPing, ack, 0, "12345678"), 0, []string{ignored}, ""},
	{"6.8", "GOAWAY on a stream", frame(tGoAway, 0, 1, "12345678"), 0, []string{connProtocol}, ""},
	{"6.9", "WINDOW_UPDATE of three bytes", frame(tWindow, 0, 0, "123"), 0, []string{connSize}, ""},
	{"6.9", "WINDOW_UPDATE by 0", frame(tWindow, 0, 0, u32(0)), 0, []string{connProtocol}, ""},
	{"6.9", "WINDOW_UPDATE of a stream by 0", frame(tWindow, 0, 1, u32(0)), 1, []string{malformed}, ""},
	{"6.9.1", "a window beyond 2^31-1", frame(tWindow, 0, 0, u32(1<<31-1)), 0, []string{connFlow}, ""},
	{"6.9.1", "a stream's window beyond 2^31-1", frame(tWindow, 0, 1, u32(1<<31-1)), 1, []string{streamFlow}, ""},
	{"6.9.2", "windows that SETTINGS move beyond 2^31-1", frame(tWindow, 0, 1, u32(1<<31-1-65535)) + frame(tSettings, 0, 0, setting(setWindow, 65536)), 0, []string{connFlow}, ""},
	{"6.10", "CONTINUATION without HEADERS", frame(tContinuation, endHeaders, 1, ""), 0, []string{connProtocol}, ""},
	{"6.10", "CONTINUATION after END_HEADERS", get(9, "/hello") + frame(tContinuation, endHeaders, 9, ""), 0, []string{connProtocol}, ""},
	{"6.10", "CONTINUATION of another stream", frame(tHeaders, 0, 9, request("GET", "/")) + frame(tContinuation, endHeaders, 1, ""), 0, []string{connProtocol}, ""},

	{"8.1", "HEADERS in a body without END_STREAM", headers(1, 0, block("a", "b")), 1, []string{malformed, badRequest}, ""},
	{"8.1", "a pseudo-header field in trailers", headers(1, endStream, block(":path", "/")), 1, []string{malformed, badRequest}, ""},
	{"8.2", "an upper-case name in trailers", headers(1, endStream, block("A", "b")), 1, []string{malformed, badRequest}, ""},
	{"8.2.1", "a control byte in a trailer", headers(1, endStream, block("a", "\x00")), 1, []string{malformed, badRequest}, ""},
	{"8.2.2", "a connection's field in trailers", headers(1, endStream, block("connection", "close")), 1, []string{malformed, badRequest}, "stream 200"},
	{"6.5.1 of RFC 9110", "Content-Length in trailers", headers(1, endStream, block("content-length", "0")), 1, []string{malformed, badRequest}, "stream 200"},
}

func TestViolations(t *testing.T) {
	st := newStage()
	onEach(t, dunlin.Config{}, st.register, func(t *testing.T, s *server) {
		for _, v := range violations {
			t.Run(strings.ReplaceAll(v.section+" "+v.what, "/", "|"), func(t *testing.T) {
				p := s.dial(t)
				p.send(post(1, "/length"), get(3, "/hold"), get(5, "/hello"), post(7, "/length"), frame(tReset, 0, 7, u32(cancel)))
				p.want(5, "200", "hello")
				v.judge(t, p, v.stream == 5 || v.stream == 7)
			})
		}
	})
}

// judge commits the violation and checks the outcome. before reports whether the stream had already ended.
func (v violation) judge(t *testing.T, p *peer, before bool) {
	t.Helper()
	p.send(v.in)
	word := ""
	if slices.Contains(v.allowed, ignored) {
		word = "whatnow?"
		p.send(frame(tPing, 0, 0, word))
	}
	got := p.outcome(v.stream, before, word)
	said, _, _ := strings.Cut(got.String(), ", then ") // an answer, and a reset for later frames
	if !slices.Contains(v.allowed, said) && (said != v.netHTTP || !p.netHTTP()) {
		t.Fatalf("got %v, want one of %q; %s", got, v.allowed, p.state())
	}
	if got.scope != "connection" {
		p.send(get(101, "/hello")) // the connection continues
		p.want(101, "200", "hello")
	}
}

// Beginnings that are none (RFC 9113, section 3.4).
func TestBeginnings(t *testing.T) {
	t.Parallel()
	st := newStage()
	onEach(t, dunlin.Config{}, st.register, func(t *testing.T, s *server) {
		for what, in := range map[string]string{
			"a preface with a typo":    strings.Replace(preface, "SM", "SN", 1) + frame(tSettings, 0, 0),
			"no SETTINGS":              preface + frame(tPing, 0, 0, "12345678"),
			"a request first":          preface + get(1, "/hello"),
			"an acknowledgement first": preface + frame(tSettings, ack, 0),
		} {
			t.Run(what, func(t *testing.T) {
				t.Parallel()
				p := s.open(t, in)
				p.until(func() bool { return false }) // the connection ends
				p.mu.Lock()
				defer p.mu.Unlock()
				if p.goneBy == "" || len(p.away) > 0 && p.away[0].code != protocol {
					t.Errorf("%s: ended by %q, GOAWAY %v", what, p.goneBy, p.away)
				}
				if p.streams[1].over() {
					t.Errorf("got an answer: %v", p.streams[1])
				}
				p.faults = nil // the answer may be HTTP/1.1, which is not a frame
			})
		}
	})
}

// An error ends its connection (section 5.4.1) in any state, and no other connection.
func TestErrorsEndConnections(t *testing.T) {
	t.Parallel()
	st := newStage()
	onEach(t, dunlin.Config{}, st.register, func(t *testing.T, s *server) {
		other := s.dial(t)
		p := s.dial(t)
		p.send(get(1, "/hold?1"), post(3, "/length"), get(5, "/hello"))
		if got := await(t, "the action", st.begun); got != "1" {
			t.Fatalf("began %q", got)
		}
		p.want(5, "200", "hello")
		p.send(frame(tPing, 0, 3, "12345678"))
		p.until(func() bool { return false })
		if p.goneBy == "" || len(p.away) != 1 || p.away[0].code != protocol || p.away[0].last < 5 {
			t.Errorf("got %s", p.state())
		}
		if got := await(t, "the end of the action", st.ended); got != "cancelled" {
			t.Errorf("the action was %s", got)
		}
		other.send(get(1, "/hello"))
		other.want(1, "200", "hello")
		other.close()
		eventually(t, "the end of the connections", func() bool { return s.Stats().Connections.Open == 0 })
		wantNothingHeld(t, s)
	})
}

// wantNothingHeld waits until no memory is charged.
func wantNothingHeld(t *testing.T, s *server) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		st := s.Stats()
		if st.Memory.Held == 0 && st.Memory.Holders == 0 && st.Actions.InFlight == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("memory or connections remain: %+v, %+v, %+v", st.Memory, st.Actions, st.Connections)
		}
	}
	if st := s.Stats(); st.Memory.Pending != 0 {
		t.Errorf("got %+v", st.Memory)
	}
}
