package http2_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/http2"
)

// Violations of RFC 9113 by a client, with the resulting error code of the connection or of one stream. In each connection
// stream 1 is open, 3 is half-closed by the client, 5 is closed by both and 7 was reset by the client.
func TestViolations(t *testing.T) {
	const (
		protocol, size, flow, closed, compression = http2.ProtocolError, http2.FrameSizeError, http2.FlowControlError, http2.StreamClosed, http2.CompressionError
		enhanceYourCalm                           = http2.EnhanceYourCalm
		conn                                      = 0
	)
	long := strings.Repeat("x", 16<<10+1)
	for _, c := range []struct {
		section, what string
		in            string
		stream        uint32
		code          http2.Code
	}{
		{"4.2", "a frame beyond SETTINGS_MAX_FRAME_SIZE", frame(tData, 0, 1, long), conn, size},
		{"4.2", "HEADERS beyond SETTINGS_MAX_FRAME_SIZE", frame(tHeaders, endHeaders, 9, long), conn, size},
		{"4.2", "an unknown frame beyond SETTINGS_MAX_FRAME_SIZE", frame(0x55, 0, 9, long), conn, size},
		{"4.3", "a block that cannot be decoded", headers(9, endStream, "\xff\xff\xff\xff\xff"), conn, compression},
		{"4.3", "an index without an entry", headers(9, endStream, "\xbe"), conn, compression},
		{"4.3", "trailers that cannot be decoded", headers(1, endStream, "\xbe"), conn, compression},
		{"4.3", "a block for an ended stream", headers(7, endStream, "\xbe"), conn, compression},

		{"5.1", "DATA on an idle stream", frame(tData, 0, 9, "a"), conn, protocol},
		{"5.1", "RST_STREAM on an idle stream", frame(tReset, 0, 9, u32(8)), conn, protocol},
		{"5.1", "WINDOW_UPDATE on an idle stream", frame(tWindow, 0, 9, u32(8)), conn, protocol},
		{"5.1", "CONTINUATION on an idle stream", frame(tContinuation, endHeaders, 9, get()), conn, protocol},
		{"5.1", "DATA on a half-closed stream", frame(tData, 0, 3, "a"), 3, closed},
		{"5.1", "HEADERS on a half-closed stream", headers(3, endStream, get()), 3, closed},
		{"5.1", "DATA on a closed stream", frame(tData, 0, 5, "a"), 5, closed},
		{"5.1", "HEADERS on a closed stream", headers(5, endStream, get()), conn, closed},
		{"5.1", "DATA on a stream that the client has reset", frame(tData, 0, 7, "a"), 7, closed},
		{"5.1", "HEADERS on a stream that the client has reset", headers(7, endStream, get()), conn, closed},
		{"5.1.1", "a stream with an even number", headers(10, endStream, get()), conn, protocol},
		{"5.1.1", "a skipped stream", headers(11, endStream, get()) + headers(9, endStream, get()), conn, protocol},

		{"6.1", "DATA on stream 0", frame(tData, 0, 0, "a"), conn, protocol},
		{"6.1", "DATA with only padding, too long", frame(tData, padded, 1, "\x01"), conn, protocol},
		{"6.1", "DATA with padding too long", frame(tData, padded, 1, "\x05abcd"), conn, protocol},
		{"6.1", "DATA without its length of padding", frame(tData, padded, 1, ""), conn, size},
		{"6.2", "HEADERS on stream 0", headers(0, endStream, get()), conn, protocol},
		{"6.2", "HEADERS with padding too long", headers(9, padded, "\x7f"+get()), conn, protocol},
		{"6.2", "HEADERS with padding into the priority", headers(9, padded|withPriority, "\x01"+u32(0)+"\x00"), conn, protocol},
		{"6.2", "HEADERS without its length of padding", headers(9, padded, ""), conn, size},
		{"6.2", "HEADERS without its priority", headers(9, withPriority, "abcd"), conn, size},
		{"6.2", "PING within a field block", frame(tHeaders, 0, 9, get()) + frame(tPing, 0, 0, "12345678"), conn, protocol},
		{"6.2", "HEADERS of another stream within a field block", frame(tHeaders, 0, 9, get()) + headers(11, 0, get()), conn, protocol},
		{"6.2", "an unknown frame within a field block", frame(tHeaders, 0, 9, get()) + frame(0x55, 0, 9, ""), conn, protocol},
		{"6.3", "PRIORITY on stream 0", frame(tPriority, 0, 0, "12345"), conn, protocol},
		{"6.3", "PRIORITY of four bytes", frame(tPriority, 0, 1, "1234"), 1, size},
		{"6.3", "PRIORITY of four bytes on an idle stream", frame(tPriority, 0, 9, "1234"), conn, size},
		{"5.3.1 of RFC 7540", "a stream that depends on itself", frame(tPriority, 0, 1, u32(1)+"x"), 1, protocol},
		{"5.3.1 of RFC 7540", "an idle stream that depends on itself", frame(tPriority, 0, 9, u32(9)+"x"), conn, protocol},
		{"5.3.1 of RFC 7540", "HEADERS that depend on themselves", headers(9, withPriority|endStream, u32(9)+"x"+get()), 9, protocol},
		{"6.4", "RST_STREAM on stream 0", frame(tReset, 0, 0, u32(8)), conn, protocol},
		{"6.4", "RST_STREAM of three bytes", frame(tReset, 0, 1, "abc"), conn, size},
		{"6.5", "SETTINGS on a stream", frame(tSettings, 0, 1, ""), conn, protocol},
		{"6.5", "SETTINGS of five bytes", frame(tSettings, 0, 0, "12345"), conn, size},
		{"6.5", "an acknowledgement with a payload", frame(tSettings, ack, 0, setting(2, 0)), conn, size},
		{"6.5.2", "SETTINGS_ENABLE_PUSH of 2", frame(tSettings, 0, 0, setting(2, 2)), conn, protocol},
		{"6.5.2", "SETTINGS_INITIAL_WINDOW_SIZE of 2^31", frame(tSettings, 0, 0, setting(4, 1<<31)), conn, flow},
		{"6.5.2", "SETTINGS_MAX_FRAME_SIZE of 16383", frame(tSettings, 0, 0, setting(5, 16383)), conn, protocol},
		{"6.5.2", "SETTINGS_MAX_FRAME_SIZE of 2^24", frame(tSettings, 0, 0, setting(5, 1<<24)), conn, protocol},
		{"3 of RFC 8441", "SETTINGS_ENABLE_CONNECT_PROTOCOL of 2", frame(tSettings, 0, 0, setting(8, 2)), conn, protocol},
		{"2.1 of RFC 9218", "SETTINGS_NO_RFC7540_PRIORITIES of 2", frame(tSettings, 0, 0, setting(9, 2)), conn, protocol},
		{"2.1 of RFC 9218", "SETTINGS_NO_RFC7540_PRIORITIES changed", frame(tSettings, 0, 0, setting(9, 1)+setting(9, 0)), conn, protocol},
		{"6.6", "PUSH_PROMISE", frame(tPush, endHeaders, 1, u32(2)+get()), conn, protocol},
		{"6.7", "PING on a stream", frame(tPing, 0, 1, "12345678"), conn, protocol},
		{"6.7", "PING of seven bytes", frame(tPing, 0, 0, "1234567"), conn, size},
		{"6.8", "GOAWAY on a stream", frame(tGoAway, 0, 1, "12345678"), conn, protocol},
		{"6.8", "GOAWAY of seven bytes", frame(tGoAway, 0, 0, "1234567"), conn, size},
		{"6.9", "WINDOW_UPDATE of three bytes", frame(tWindow, 0, 0, "123"), conn, size},
		{"6.9", "WINDOW_UPDATE by 0", frame(tWindow, 0, 0, u32(0)), conn, protocol},
		{"6.9", "WINDOW_UPDATE of a stream by 0", frame(tWindow, 0, 1, u32(0)), 1, protocol},
		{"6.9.1", "a window beyond 2^31-1", frame(tWindow, 0, 0, u32(1<<31-1)), conn, flow},
		{"6.9.1", "a stream's window beyond 2^31-1", frame(tWindow, 0, 1, u32(1<<31-1)), 1, flow},
		{"6.9.1", "more than the stream's window", strings.Repeat(frame(tData, 0, 1, long[1:]), 3), 1, flow},
		{"6.9.2", "SETTINGS that increase a window beyond 2^31-1", frame(tWindow, 0, 1, u32(1<<31-1-65535)) + frame(tSettings, 0, 0, setting(4, 65536)), conn, flow},
		{"6.10", "CONTINUATION without HEADERS", frame(tContinuation, endHeaders, 1, ""), conn, protocol},
		{"6.10", "CONTINUATION after END_HEADERS", headers(9, endStream, get()) + frame(tContinuation, endHeaders, 9, ""), conn, protocol},
		{"6.10", "CONTINUATION of another stream", frame(tHeaders, 0, 9, get()) + frame(tContinuation, endHeaders, 1, ""), conn, protocol},
		{"7.1 of RFC 9218", "PRIORITY_UPDATE on a stream", frame(tPriorityUpdate, 0, 1, u32(1)+"u=1"), conn, protocol},
		{"7.1 of RFC 9218", "PRIORITY_UPDATE of stream 0", frame(tPriorityUpdate, 0, 0, u32(0)+"u=1"), conn, protocol},
		{"7.1 of RFC 9218", "PRIORITY_UPDATE of a push that was not promised", frame(tPriorityUpdate, 0, 0, u32(2)+"u=1"), conn, protocol},
		{"7.1 of RFC 9218", "PRIORITY_UPDATE of three bytes", frame(tPriorityUpdate, 0, 0, "abc"), conn, size},

		{"8.1", "HEADERS in a body without END_STREAM", headers(1, 0, block("a: b")), 1, protocol},
		{"8.1", "a pseudo-header field in trailers", headers(1, endStream, block(":path: /")), 1, protocol},
		{"8.2", "an upper-case name in trailers", headers(1, endStream, block("A: b")), 1, protocol},
		{"8.2.1", "a control byte in a trailer", headers(1, endStream, block("a: \x00")), 1, protocol},
		{"8.2.2", "a connection-specific field in trailers", headers(1, endStream, block("connection: close")), 1, protocol},
		{"6.5.1 of RFC 9110", "Content-Length in trailers", headers(1, endStream, block("content-length: 0")), 1, protocol},
		{"6.5.1 of RFC 9110", "Cookie in trailers", headers(1, endStream, block("cookie: a=b")), 1, protocol},
		{"8.1.1", "a body longer than Content-Length", headers(9, 0, post("content-length: 2")) + frame(tData, 0, 9, "abc"), 9, protocol},
		{"8.1.1", "a body shorter than Content-Length", headers(9, 0, post("content-length: 2")) + frame(tData, endStream, 9, "a"), 9, protocol},
		{"8.1.1", "Content-Length without a body", headers(9, endStream, post("content-length: 2")), 9, protocol},
		{"8.1.1", "trailers before Content-Length is reached", headers(9, 0, post("content-length: 2")) + headers(9, endStream, block("a: b")), 9, protocol},
		{"10.5.1", "an unlimited field block", frame(tHeaders, 0, 9, long[1:]) + strings.Repeat(frame(tContinuation, 0, 9, long[1:]), 4), conn, enhanceYourCalm},
		{"7.3 of RFC 7541", "a field block that expands", headers(9, 0, "\x40\x01a\x7f\x81\x1e"+long[:4000]+strings.Repeat("\xbe", 12000)), conn, enhanceYourCalm},
		{"10.5.1", "trailers too large", headers(1, endStream, strings.Repeat(block("a: b"), 200)), 1, enhanceYourCalm},
	} {
		t.Run(c.section+" "+c.what, func(t *testing.T) {
			cl := connect(t, nil)
			cl.send(headers(1, 0, post()) + headers(3, endStream, get()) + headers(5, endStream, get()) + headers(7, endStream, get()) + frame(tReset, 0, 7, u32(8)))
			cl.answer(5, "")
			cl.conn.Done(cl.streams[7])
			cl.receive()
			events := cl.send(c.in)
			frames := cl.receive()
			if c.stream != 0 {
				want := fmt.Sprintf("%d reset %v", c.stream, c.code)
				if cl.err != nil || !strings.Contains(strings.Join(frames, "|"), want) {
					t.Fatalf("got %[2]q, error %[3]v, want %[1]s", want, frames, cl.err)
				}
				over := fmt.Sprintf("%d over %v", c.stream, c.code)
				if known := strings.Contains(strings.Join(events, "|"), over); known != (c.stream <= 3 || strings.HasPrefix(strings.Join(events, ""), "9 POST")) {
					t.Errorf("got events %q", events)
				}
				// The connection continues.
				if got := cl.send(headers(21, endStream, get())); len(got) != 1 || got[0] != "21 GET / end" {
					t.Errorf("next request: got %q, error %v", got, cl.err)
				}
				return
			}
			if cl.err == nil {
				t.Fatalf("got no error, events %q, frames %q", events, frames)
			}
			last := frames[len(frames)-1]
			if !strings.HasPrefix(last, "goaway ") || !strings.HasSuffix(last, " "+c.code.String()) || cl.code() != c.code {
				t.Errorf("got %[2]q, error %[3]v, want GOAWAY with %[1]v", c.code, frames, cl.err)
			}
			if _, _, err := cl.conn.Next([]byte(opening)); err != cl.err || len(cl.receive()) != 0 {
				t.Error("the connection accepts input after its end")
			}
		})
	}
}

func TestConnectionPrefaces(t *testing.T) {
	for _, c := range []struct{ what, in string }{
		{"another protocol", "GET / HTTP/1.1\r\n\r\n"},
		{"an incorrect preface", strings.Replace(opening, "SM", "SN", 1)},
		{"missing SETTINGS", preface + frame(tPing, 0, 0, "12345678")},
		{"an acknowledgement first", preface + frame(tSettings, ack, 0, "")},
	} {
		cl := dial(t, nil)
		cl.send(c.in)
		if cl.err == nil || cl.code() != http2.ProtocolError {
			t.Errorf("%s: got error %v", c.what, cl.err)
		}
	}
}

// The connection's window limits all streams together.
func TestConnectionWindowExceeded(t *testing.T) {
	cl := connect(t, func(l *http2.Limits) { l.StreamWindow, l.MaxStreamWindow, l.ConnWindow = 60_000, 60_000, 65_535 })
	full := strings.Repeat("x", 16<<10)
	cl.send(headers(1, 0, post()) + frame(tData, 0, 1, full) + frame(tData, 0, 1, full))
	cl.send(headers(3, 0, post()) + frame(tData, 0, 3, full) + frame(tData, 0, 3, full[1:]))
	if cl.err != nil {
		t.Fatal(cl.err)
	}
	cl.send(frame(tData, 0, 1, "x"))
	if cl.err == nil || cl.code() != http2.FlowControlError {
		t.Errorf("got %v", cl.err)
	}
}
