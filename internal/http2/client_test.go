package http2_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/hpack"
	"github.com/dunlinhttp/dunlin/internal/http2"
)

// Types and flags of frames, with the numbers of the RFC.
const (
	tData, tHeaders, tPriority, tReset, tSettings, tPush, tPing, tGoAway, tWindow, tContinuation, tPriorityUpdate = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16

	endStream, ack, endHeaders, padded, withPriority = 1, 1, 4, 8, 0x20
)

// frame returns the bytes of a frame.
func frame(kind, flags byte, stream uint32, payload string) string {
	n := len(payload)
	head := []byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags}
	return string(binary.BigEndian.AppendUint32(head, stream)) + payload
}

func u32(n uint32) string { return string(binary.BigEndian.AppendUint32(nil, n)) }

func setting(id uint16, value uint32) string {
	return string(binary.BigEndian.AppendUint16(nil, id)) + u32(value)
}

// block returns a field block with fields given as "name: value". It does not change the table.
func block(fields ...string) string {
	var b []byte
	for _, f := range fields {
		name, value, _ := strings.Cut(f[1:], ": ")
		name = f[:1] + name
		b = append(b, 0)
		b = append(appendLength(b, len(name)), name...)
		b = append(appendLength(b, len(value)), value...)
	}
	return string(b)
}

func appendLength(b []byte, n int) []byte {
	if n < 127 {
		return append(b, byte(n))
	}
	b = append(b, 127)
	for n -= 127; n >= 128; n >>= 7 {
		b = append(b, byte(n)|128)
	}
	return append(b, byte(n))
}

// get returns the field block of an ordinary request, followed by the given fields.
func get(fields ...string) string {
	return block(append([]string{":method: GET", ":scheme: http", ":authority: a.example", ":path: /"}, fields...)...)
}

func post(fields ...string) string { return strings.Replace(get(fields...), "\x03GET", "\x04POST", 1) }

// headers returns a HEADERS frame with END_HEADERS.
func headers(stream uint32, flags byte, block string) string {
	return frame(tHeaders, flags|endHeaders, stream, block)
}

const preface = http2.Preface

// opening is the start of a client's connection.
var opening = preface + frame(tSettings, 0, 0, "")

// A client drives one connection.
type client struct {
	t       testing.TB
	conn    http2.Conn
	pool    http2.Pool
	unread  []byte
	decoder hpack.Decoder
	list    hpack.List
	streams map[uint32]*http2.Stream
	err     error
}

// connect returns a client that has completed the preface and the settings.
func connect(t testing.TB, change func(*http2.Limits)) *client {
	t.Helper()
	cl := dial(t, change)
	if events := cl.send(opening + frame(tSettings, ack, 0, "")); len(events) > 0 || cl.err != nil {
		t.Fatalf("after the preface: got events %q, error %v", events, cl.err)
	}
	cl.receive()
	return cl
}

// dial returns a client that has not sent anything yet.
func dial(t testing.TB, change func(*http2.Limits)) *client {
	lim := http2.DefaultLimits()
	if change != nil {
		change(&lim)
	}
	cl := &client{t: t, streams: map[uint32]*http2.Stream{}}
	cl.decoder.Init(nil)
	cl.conn.Init(&lim, &cl.pool, nil, 1)
	return cl
}

// send passes bytes to the connection and returns its events, one string for each.
func (cl *client) send(in string) (events []string) {
	cl.t.Helper()
	cl.unread = append(cl.unread, in...)
	for {
		n, ev, err := cl.conn.Next(cl.unread)
		var text string
		if err == nil && ev.Kind != http2.NeedMore && ev.Kind != http2.Costly {
			text = cl.describe(ev)
		}
		clear(cl.unread[:n]) // consumed bytes may be overwritten
		cl.unread = cl.unread[n:]
		if err != nil {
			cl.err = err
			return events
		}
		if ev.Kind == http2.NeedMore {
			return events
		}
		if ev.Kind == http2.Costly {
			continue
		}
		events = append(events, text)
	}
}

// describe returns an event as text, and records its stream.
func (cl *client) describe(ev http2.Event) string {
	id := ev.Stream.ID
	end := ""
	if ev.End {
		end = " end"
	}
	switch ev.Kind {
	case http2.RequestBegun:
		cl.streams[id] = ev.Stream
		r := ev.Request
		if r.Status != 0 {
			return fmt.Sprintf("%d refused %d%s", id, r.Status, end)
		}
		return fmt.Sprintf("%d %s %s%s", id, r.Method(), r.Target(), end)
	case http2.BodyData:
		return fmt.Sprintf("%d data %q%s", id, ev.Data, end)
	case http2.BodyTrailers:
		return fmt.Sprintf("%d trailers %s%s", id, strings.Join(lines(ev.Trailers), ", "), end)
	case http2.StreamOver:
		return fmt.Sprintf("%d over %v", id, ev.Err.Code())
	}
	return fmt.Sprint(ev)
}

func lines(l *hpack.List) (all []string) {
	for i := range l.Len() {
		name, value := l.Field(i)
		all = append(all, string(name)+": "+string(value))
	}
	return all
}

// receive consumes the output of the connection and returns its frames, one string for each.
func (cl *client) receive() (frames []string) {
	cl.t.Helper()
	out := string(cl.conn.Out)
	cl.conn.Out = cl.conn.Out[:0]
	var block string
	for out != "" {
		if len(out) < 9 {
			cl.t.Fatalf("truncated frame: got %x", out)
		}
		n := int(out[0])<<16 | int(out[1])<<8 | int(out[2])
		kind, flags, id := out[3], out[4], binary.BigEndian.Uint32([]byte(out[5:]))
		if n > 16<<10 || len(out) < 9+n {
			cl.t.Fatalf("got a frame of %d bytes, with %d bytes left", n, len(out))
		}
		payload := out[9 : 9+n]
		out = out[9+n:]
		end := ""
		if (kind == tData || kind == tHeaders) && flags&endStream != 0 {
			end = " end"
		}
		switch kind {
		case tData:
			if len(payload) > 20 {
				frames = append(frames, fmt.Sprintf("%d data of %d%s", id, len(payload), end))
			} else {
				frames = append(frames, fmt.Sprintf("%d data %q%s", id, payload, end))
			}
		case tHeaders, tContinuation:
			block += payload
			if flags&endHeaders == 0 {
				frames = append(frames, fmt.Sprintf("%d part of %d%s", id, n, end))
				continue
			}
			lim := hpack.Limits{MaxList: 1 << 20, MaxFields: 1000, MaxWork: 1 << 20}
			if err := cl.decoder.Decode([]byte(block), &cl.list, &lim); err != nil {
				cl.t.Fatal(err)
			}
			block = ""
			frames = append(frames, fmt.Sprintf("%d %s%s", id, strings.Join(lines(&cl.list), ", "), end))
		case tReset:
			frames = append(frames, fmt.Sprintf("%d reset %v", id, http2.Code(binary.BigEndian.Uint32([]byte(payload)))))
		case tSettings:
			text := "settings"
			if flags&ack != 0 {
				text += " ack"
			}
			for ; payload != ""; payload = payload[6:] {
				text += fmt.Sprintf(" %d=%d", binary.BigEndian.Uint16([]byte(payload)), binary.BigEndian.Uint32([]byte(payload[2:])))
			}
			frames = append(frames, text)
		case tPing:
			frames = append(frames, fmt.Sprintf("ping %d %q", flags, payload))
		case tGoAway:
			frames = append(frames, fmt.Sprintf("goaway %d %v", binary.BigEndian.Uint32([]byte(payload)), http2.Code(binary.BigEndian.Uint32([]byte(payload[4:])))))
		case tWindow:
			frames = append(frames, fmt.Sprintf("%d window %d", id, binary.BigEndian.Uint32([]byte(payload))))
		default:
			cl.t.Fatalf("got a frame of type %d", kind)
		}
	}
	return frames
}

// answer sends a response with a body on a stream.
func (cl *client) answer(id uint32, body string) {
	cl.t.Helper()
	st := cl.streams[id]
	if cl.conn.BeginHead(st, 200) {
		cl.conn.ContentLength(int64(len(body)))
		cl.conn.EndHead(body == "")
		if body != "" {
			cl.conn.Data(st, []byte(body), true)
		}
	}
	cl.conn.Done(st)
}

// code returns the code of the error that ended the connection.
func (cl *client) code() http2.Code {
	var e http2.Error
	if !errors.As(cl.err, &e) {
		cl.t.Fatalf("got error %v, want an http2.Error", cl.err)
	}
	return e.Code()
}
