package h2_test

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// A peer is a client that sends any frames. It checks the frames of the server: windows, states of streams and the form of
// answers. It acknowledges SETTINGS and PING, and grants received bytes again, unless configured otherwise.
type peer struct {
	t    *testing.T
	conn net.Conn

	mu      sync.Mutex
	changed *sync.Cond
	late    bool // the waiting test has reached its time limit

	out     bytes.Buffer // output that is not yet written
	unsent  bool         // bytes removed from out are being written
	stopped bool         // no further writes

	quiet   bool // grants no further windows
	deaf    bool // does not read
	streams map[uint32]*answer
	asked   map[uint32]bool  // streams that were opened
	room    map[uint32]int64 // the peer's windows, by stream; 0 for the connection
	server  map[http2.SettingID]uint32
	greeted bool
	acked   int      // SETTINGS of ours
	pongs   []string // PING of ours
	window  int64    // the server's window for the connection
	initial int64    // and of new streams
	pending []int64  // initial windows that were not acknowledged yet; -1 for none in it
	unsure  bool     // net/http may have acknowledged several at once
	goneBy  string   // reason why the connection has ended; "" while it lasts
	away    []goAway
	faults  []string // violations of the server
}

// goAway has the fields of a GOAWAY frame.
type goAway struct {
	last uint32
	code http2.ErrCode
	text string
}

// An answer is everything received on a stream.
type answer struct {
	interim  []string // status codes 1xx, followed by their fields
	status   string
	fields   map[string][]string
	body     bytes.Buffer
	trailers map[string][]string
	ended    bool
	reset    bool
	code     http2.ErrCode
	window   int64
}

// over reports whether the stream has ended for the server.
func (a *answer) over() bool { return a != nil && (a.ended || a.reset) }

// String describes the state of the stream.
func (a *answer) String() string {
	switch {
	case a == nil:
		return "nothing"
	case a.reset && a.status != "" && !(a.ended && a.code == noError):
		return a.status + ", then " + a.code.String()
	case a.reset && !a.ended:
		return a.code.String()
	case a.ended:
		return a.status
	}
	return a.status + " without end"
}

// dial connects, and greets with the given settings (setting).
func (s *server) dial(t *testing.T, settings ...string) *peer {
	t.Helper()
	return s.open(t, preface+frame(tSettings, 0, 0, settings...))
}

// open connects and sends first, which need not be a valid preface.
func (s *server) open(t *testing.T, first string) *peer {
	t.Helper()
	nc, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	if s.secure {
		c := tls.Client(nc, &tls.Config{RootCAs: s.trusted, ServerName: "127.0.0.1", NextProtos: []string{"h2"}})
		if err := c.Handshake(); err != nil {
			t.Fatal(err)
		}
		if got := c.ConnectionState().NegotiatedProtocol; got != "h2" {
			t.Fatalf("the server chose protocol %q", got)
		}
		nc = c
	}
	p := &peer{
		t: t, conn: nc, streams: map[uint32]*answer{}, asked: map[uint32]bool{}, server: map[http2.SettingID]uint32{},
		room: map[uint32]int64{0: 65535}, window: 65535, initial: 65535,
	}
	p.changed = sync.NewCond(&p.mu)
	p.out.WriteString(first)
	if greeting, ok := strings.CutPrefix(first, preface); ok {
		p.countSent(greeting)
	}
	var both sync.WaitGroup
	both.Go(p.write)
	both.Go(p.read)
	t.Cleanup(func() {
		p.close()
		both.Wait()
		for _, f := range p.faults {
			t.Errorf("the server is wrong: got %s", f)
		}
	})
	return p
}

func (p *peer) close() {
	p.mu.Lock()
	p.stopped = true
	p.deaf = false
	p.out = bytes.Buffer{}
	p.changed.Broadcast()
	p.mu.Unlock()
	_ = p.conn.Close()
}

// set sends SETTINGS, when those before have been acknowledged: net/http has one
// acknowledgement for several.
func (p *peer) set(settings ...string) {
	p.t.Helper()
	p.must("the acknowledgement of SETTINGS", func() bool { return len(p.pending) == 0 })
	p.send(frame(tSettings, 0, 0, settings...))
}

// send sends frames, as soon as the server takes them. It waits while it has a megabyte to
// send.
func (p *peer) send(frames ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.out.Len() > 1<<20 && !p.stopped {
		p.changed.Wait()
	}
	for _, f := range frames {
		p.countSent(f)
		p.out.WriteString(f)
	}
	p.changed.Broadcast()
}

// countSent updates the account of the frames that are sent.
func (p *peer) countSent(frames string) {
	for len(frames) >= 9 {
		n := int(frames[0])<<16 | int(frames[1])<<8 | int(frames[2])
		kind, flags, stream := frames[3], frames[4], binary.BigEndian.Uint32([]byte(frames[5:]))
		frames = frames[9:]
		if n > len(frames) {
			return // only the beginning was written
		}
		payload := frames[:n]
		frames = frames[n:]
		switch {
		case kind == tHeaders && !p.asked[stream]:
			p.asked[stream] = true
			p.room[stream] = p.initialRoom()
		case kind == tSettings && flags&ack == 0:
			initial := int64(-1)
			for ; len(payload) >= 6; payload = payload[6:] {
				if binary.BigEndian.Uint16([]byte(payload)) == setWindow {
					initial = int64(binary.BigEndian.Uint32([]byte(payload[2:])))
				}
			}
			if p.pending = append(p.pending, initial); len(p.pending) > 1 {
				p.unsure = true
			}
		case kind == tData:
			p.room[0] -= int64(n)
			p.room[stream] -= int64(n)
		case kind == tWindow && n == 4:
			by := int64(binary.BigEndian.Uint32([]byte(payload)))
			if stream == 0 {
				p.window += by
			} else {
				p.stream(stream).window += by
			}
		}
	}
}

func (p *peer) initialRoom() int64 {
	if v, ok := p.server[http2.SettingInitialWindowSize]; ok {
		return int64(v)
	}
	return 65535
}

func (p *peer) stream(id uint32) *answer {
	a := p.streams[id]
	if a == nil {
		a = &answer{window: p.initial}
		p.streams[id] = a
	}
	return a
}

// write sends the contents of out.
func (p *peer) write() {
	for {
		p.mu.Lock()
		p.unsent = false
		p.changed.Broadcast()
		for p.out.Len() == 0 && !p.stopped {
			p.changed.Wait()
		}
		if p.stopped {
			p.mu.Unlock()
			return
		}
		piece := bytes.Clone(p.out.Next(256 << 10))
		p.unsent = true
		p.changed.Broadcast()
		p.mu.Unlock()
		if _, err := p.conn.Write(piece); err != nil {
			p.mu.Lock()
			p.stopped, p.unsent = true, false
			p.changed.Broadcast()
			p.mu.Unlock()
			return
		}
	}
}

// read checks the received frames.
func (p *peer) read() {
	framer := http2.NewFramer(io.Discard, ear{p})
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	framer.SetMaxReadFrameSize(16 << 10)
	for {
		f, err := framer.ReadFrame()
		p.mu.Lock()
		if err != nil {
			p.goneBy = err.Error()
			if _, cut := err.(net.Error); !cut && err != io.EOF && err != io.ErrUnexpectedEOF && !p.stopped {
				p.wrong("its frames: %v, %v", err, framer.ErrorDetail())
			}
			p.changed.Broadcast()
			p.mu.Unlock()
			return
		}
		p.checkFrame(f)
		p.changed.Broadcast()
		p.mu.Unlock()
	}
}

// An ear reads from the connection, but not while the peer is deaf.
type ear struct{ p *peer }

func (e ear) Read(b []byte) (int, error) {
	e.p.mu.Lock()
	for e.p.deaf && !e.p.stopped {
		e.p.changed.Wait()
	}
	e.p.mu.Unlock()
	return e.p.conn.Read(b)
}
