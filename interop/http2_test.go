package interop_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	xhttp2 "golang.org/x/net/http2"
	xhpack "golang.org/x/net/http2/hpack"

	"github.com/dunlinhttp/dunlin/internal/http2"
)

// The frames of golang.org/x/net are parsed in the same way by both sides, and a client of net/http gets answers from
// a connection of Dunlin's, which here has the plainest of owners.

const framePreface = http2.Preface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00"

// TestFramesAreJudgedLikeOthers passes random frames to both. Dunlin refuses the frames that x/net's framer refuses, with the
// same code. It also checks the states of streams.
func TestFramesAreParsedLikeXNet(t *testing.T) {
	lim := http2.DefaultLimits()
	judged := map[string]int{}
	for seed := range uint64(20_000) {
		r := rand.New(rand.NewPCG(seed, 4))
		in := randomFrame(r)
		theirs := xhttp2.NewFramer(io.Discard, bytes.NewReader(in))
		theirs.SetMaxReadFrameSize(16 << 10)
		_, theirErr := theirs.ReadFrame()

		var pool http2.Pool
		var c http2.Conn
		c.Init(&lim, &pool, nil, 1)
		open := headersFrame(1, false)
		if _, _, err := c.Next(append([]byte(framePreface), open...)); err != nil {
			t.Fatal(err)
		}
		c.Out = nil
		_, _, err := c.Next(in)
		var connection xhttp2.ConnectionError
		var stream xhttp2.StreamError
		if errors.As(theirErr, &connection) && in[3] == 2 && in[8] == 1 {
			theirErr = xhttp2.StreamError{StreamID: 1, Code: xhttp2.ErrCode(connection)} // as in RFC 9113 section 6.3
		}
		switch {
		case errors.As(theirErr, &connection):
			judged[connection.Error()]++
			if e, ok := errors.AsType[http2.Error](err); !ok || uint32(e.Code()) != uint32(connection) && !stateFirst(in) {
				t.Fatalf("%x: got error %v, x/net returns %v", in, err, theirErr)
			}
		case errors.As(theirErr, &stream):
			judged[stream.Error()]++
			if e, ok := errors.AsType[http2.Error](err); ok {
				if uint32(e.Code()) != uint32(stream.Code) && !stateFirst(in) {
					t.Fatalf("%x: got error %v, x/net returns %v", in, err, theirErr)
				}
			} else if !bytes.Contains(c.Out, []byte{3, 0, 0, 0, 0, byte(stream.StreamID), 0, 0, 0, byte(stream.Code)}) {
				t.Fatalf("%x: got answer %x, x/net returns %v", in, c.Out, theirErr)
			}
		case errors.Is(theirErr, xhttp2.ErrFrameTooLarge):
			judged["too large"]++
			if e, ok := errors.AsType[http2.Error](err); !ok || e.Code() != http2.FrameSizeError {
				t.Fatalf("%x: got error %v, x/net returns %v", in[:9], err, theirErr)
			}
		}
	}
	if len(judged) < 5 {
		t.Errorf("got few refused frames: %v", judged)
	}
}

// stateFirst reports whether a frame is on a stream in the wrong state, in addition to another error. Then either error may
// be reported.
func stateFirst(in []byte) bool {
	kind, stream := in[3], uint32(in[5])<<24|uint32(in[6])<<16|uint32(in[7])<<8|uint32(in[8])
	switch kind {
	case 4, 6, 7:
		return stream != 0
	case 8:
		return stream > 1
	}
	return stream != 1 || kind == 9
}

func randomFrame(r *rand.Rand) []byte {
	n := r.IntN(20)
	if r.IntN(100) == 0 {
		n = 16<<10 + r.IntN(3)
	}
	kind := byte(r.IntN(11))
	flags := []byte{0, 0, 1, 4, 5, 8, 0x20, 0x2d}[r.IntN(8)]
	b := []byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags, 0, 0, 0, []byte{0, 0, 1, 1, 1, 2, 3}[r.IntN(7)]}
	for range n {
		b = append(b, []byte{0, 0, 0, 1, 4, 0x7f, 0x82, 0xff}[r.IntN(8)])
	}
	return b
}

// headersFrame returns the HEADERS frame of an ordinary request.
func headersFrame(id uint32, end bool) []byte {
	var block, out bytes.Buffer
	e := xhpack.NewEncoder(&block)
	for _, f := range [][2]string{{":method", "GET"}, {":scheme", "http"}, {":authority", "a.example"}, {":path", "/"}} {
		e.WriteField(xhpack.HeaderField{Name: f[0], Value: f[1], Sensitive: true})
	}
	xhttp2.NewFramer(&out, nil).WriteHeaders(xhttp2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndStream: end, EndHeaders: true})
	return out.Bytes()
}

// plainOwner serves a connection. Each answer describes the request and its body, and has a body of the length that the path
// names. It writes in its turn, within the windows.
type plainOwner struct {
	conn http2.Conn
	pool http2.Pool
	left map[*http2.Stream]int
	long int // length of the body in bytes, if it is not in the path
}

type upload struct {
	head string
	body []byte
}

// serve serves a connection until it ends, and returns the client's violation.
func (o *plainOwner) serve(nc net.Conn) error {
	defer nc.Close()
	lim := http2.DefaultLimits()
	o.left = map[*http2.Stream]int{}
	o.conn.Init(&lim, &o.pool, nil, 1)
	buf := make([]byte, 64<<10)
	have := 0
	for {
		o.write()
		if _, err := nc.Write(o.conn.Out); err != nil {
			return nil
		}
		o.conn.Out = o.conn.Out[:0]
		n, err := nc.Read(buf[have:])
		if err != nil {
			return nil
		}
		have += n
		for at := 0; ; {
			n, ev, err := o.conn.Next(buf[at:have])
			at += n
			if err != nil {
				_, _ = nc.Write(o.conn.Out)
				return err
			}
			if ev.Kind == http2.NeedMore {
				have = copy(buf, buf[at:have])
				break
			}
			o.event(ev)
		}
	}
}

func (o *plainOwner) event(ev http2.Event) {
	st := ev.Stream
	switch ev.Kind {
	case http2.RequestBegun:
		st.Owner = &upload{head: fmt.Sprintf("%s %s %s", ev.Request.Method(), ev.Request.Authority(), ev.Request.Target())}
	case http2.BodyData:
		up := st.Owner.(*upload)
		up.body = append(up.body, ev.Data...)
		o.conn.Consumed(st, len(ev.Data))
	case http2.StreamOver:
		delete(o.left, st)
		o.conn.Done(st)
		return
	}
	if !ev.End {
		return
	}
	up := st.Owner.(*upload)
	length := o.long
	if _, n, found := strings.Cut(up.head, "?"); found {
		fmt.Sscan(n, &length)
	}
	o.conn.BeginHead(st, 200)
	o.conn.Field("X-Request", up.head)
	o.conn.Field("X-Body", fmt.Sprint(len(up.body), " ", bytes.Count(up.body, []byte("u"))))
	o.conn.EndHead(length == 0)
	if length > 0 {
		o.left[st] = length
		o.conn.Want(st)
	} else {
		o.conn.Done(st)
	}
}

func (o *plainOwner) write() {
	for len(o.conn.Out) < 256<<10 {
		st, n := o.conn.NextSender()
		if st == nil {
			return
		}
		n = min(n, o.left[st])
		o.left[st] -= n
		o.conn.Data(st, bytes.Repeat([]byte{byte('a' + st.ID%26)}, n), o.left[st] == 0)
		if o.left[st] == 0 {
			delete(o.left, st)
			o.conn.Done(st)
		}
	}
}

// TestClientOfOthers uses the client of net/http: many concurrent requests, with
// bodies both ways that are longer than all windows.
func TestClientOfNetHTTP(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			served.Go(func() {
				if err := new(plainOwner).serve(nc); err != nil {
					t.Error(err)
				}
			})
		}
	})
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	client := http.Client{Transport: transport, Timeout: patience}
	var calls sync.WaitGroup
	for i := range 60 {
		calls.Go(func() {
			length, up := i*i*200, i*7000
			url := fmt.Sprintf("http://%s/call/%d?%d", ln.Addr(), i, length)
			resp, err := client.Post(url, "text/plain", strings.NewReader(strings.Repeat("u", up)))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil || len(body) != length || len(body) > 0 && bytes.Count(body, body[:1]) != length {
				t.Errorf("call %d: got %d bytes, %v", i, len(body), err)
			}
			if got, want := resp.Header.Get("X-Request"), fmt.Sprintf("POST %s /call/%d?%d", ln.Addr(), i, length); got != want {
				t.Errorf("got the answer to %q, want %q", got, want)
			}
			if got, want := resp.Header.Get("X-Body"), fmt.Sprint(up, " ", up); got != want {
				t.Errorf("call %d: the body was %s, want %s", i, got, want)
			}
		})
	}
	calls.Wait()
	transport.CloseIdleConnections()
	ln.Close()
	served.Wait()
}

// BenchmarkHTTP2Request reads the frame of a browser's request, with its fields checked, and
// writes an ordinary answer, 32 streams at a time.
func BenchmarkHTTP2Request(b *testing.B) {
	const date, body = "Mon, 21 Oct 2013 20:13:21 GMT", `{"message":"Hello, World!"}`
	_, later := hpackRequests()
	first, _ := hpackRequests()
	in := func(first []byte, id uint32) []byte {
		var out bytes.Buffer
		xhttp2.NewFramer(&out, nil).WriteHeaders(xhttp2.HeadersFrameParam{StreamID: id, BlockFragment: first, EndStream: true, EndHeaders: true})
		return out.Bytes()
	}
	b.Run("dunlin", func(b *testing.B) {
		lim := http2.DefaultLimits()
		var pool http2.Pool
		var c http2.Conn
		c.Init(&lim, &pool, nil, 1)
		serve := func(in []byte) {
			_, ev, err := c.Next(in)
			if err != nil || ev.Kind != http2.RequestBegun || ev.Request.Status != 0 {
				b.Fatal(ev, err)
			}
			c.BeginHead(ev.Stream, 200)
			c.Field("Content-Type", "application/json")
			c.ContentLength(int64(len(body)))
			c.Field("Date", date)
			c.EndHead(false)
			c.Data(ev.Stream, []byte(body), true)
			c.Done(ev.Stream)
		}
		serve(append([]byte(framePreface), in(first, 1)...))
		frame := in(later, 1)
		opened := []byte("\x00\x00\x04\x08\x00\x00\x00\x00\x00\x00\x01\x00\x00")
		id := uint32(1)
		b.ReportAllocs()
		for b.Loop() {
			id = (id + 2) & (1<<31 - 1)
			if id == 1 { // the stream numbers are used up
				b.Fatal("the benchmark needs too many streams")
			}
			frame[5], frame[6], frame[7], frame[8] = byte(id>>24), byte(id>>16), byte(id>>8), byte(id)
			serve(frame)
			if id%64 == 1 {
				c.Out = c.Out[:0]
				if _, _, err := c.Next(opened); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("xnet", func(b *testing.B) {
		var read bytes.Reader
		var write, block bytes.Buffer
		framer := xhttp2.NewFramer(&write, &read)
		framer.SetReuseFrames()
		framer.ReadMetaHeaders = xhpack.NewDecoder(4096, nil)
		encoder := xhpack.NewEncoder(&block)
		serve := func(in []byte) {
			read.Reset(in)
			f, err := framer.ReadFrame()
			if err != nil {
				b.Fatal(err)
			}
			head := f.(*xhttp2.MetaHeadersFrame)
			block.Reset()
			for _, f := range [...]xhpack.HeaderField{{Name: ":status", Value: "200"}, {Name: "content-type", Value: "application/json"}, {Name: "content-length", Value: "27"}, {Name: "date", Value: date}} {
				encoder.WriteField(f)
			}
			framer.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: head.StreamID, BlockFragment: block.Bytes(), EndHeaders: true})
			framer.WriteData(head.StreamID, true, []byte(body))
		}
		serve(in(first, 1))
		frame := in(later, 1)
		id := uint32(1)
		b.ReportAllocs()
		for b.Loop() {
			id = (id + 2) & (1<<31 - 1)
			frame[5], frame[6], frame[7], frame[8] = byte(id>>24), byte(id>>16), byte(id>>8), byte(id)
			serve(frame)
			if id%64 == 1 {
				write.Reset()
			}
		}
	})
}
