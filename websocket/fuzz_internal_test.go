package websocket

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// FuzzInput checks that the fragmentation of the input has no effect on messages, output and End, and that no memory remains
// charged. cuts has the length of each fragment but the last.
func FuzzInput(f *testing.F) {
	masked := func(first byte, payload string) []byte {
		return append([]byte{first, 0x80 | byte(len(payload)), 0, 0, 0, 0}, payload...)
	}
	f.Add([]byte(nil), []byte(nil), false)
	f.Add(append(masked(0x81, "hello"), masked(0x89, "ping")...), []byte{1, 2, 3}, false)
	f.Add(append(masked(0x01, "he"), append(masked(0x8a, ""), masked(0x80, "llo")...)...), []byte{2, 0, 7}, false)
	f.Add(append(masked(0x82, "x"), masked(0x88, "\x03\xe8bye")...), []byte{9}, true)
	f.Add(append(masked(0xc1, "\xca\x48\xcd\xc9\xc9\x07\x00"), masked(0x81, "\xff")...), []byte{5, 5}, true)
	f.Add([]byte{0x82, 0xfe, 0x01, 0x00, 1, 2, 3, 4, 5}, []byte{4}, false)
	f.Fuzz(func(t *testing.T, input, cuts []byte, compress bool) {
		whole, pieces := transcript(t, input, nil, compress), transcript(t, input, cuts, compress)
		if whole != pieces {
			t.Errorf("input %x at once:\n%s\nin pieces %v:\n%s", input, whole, cuts, pieces)
		}
	})
}

// transcript passes input to a connection and returns its messages, output and End.
func transcript(t *testing.T, input, cuts []byte, compress bool) string {
	var log bytes.Buffer
	h := New(Options{
		MaxMessage: 1 << 10, MaxFragments: 8,
		Message: func(c *Conn, m Message) {
			fmt.Fprintf(&log, "message %d %q\n", m.Kind, m.Data)
			if err := c.Send(m.Kind, m.Data); err != nil {
				fmt.Fprintln(&log, "send:", err)
			}
		},
	})
	c := &Conn{h: h, subprotocol: -1}
	if compress {
		c.window = 15
	}
	p, peer := (*protocol)(c), new(fakePeer)
	p.Open(peer)
	var kept, out []byte
	ended := false
	feed := func(piece []byte) {
		kept = append(kept, piece...)
		for again := true; again && !ended; {
			peer.again = false
			n := p.Data(peer, kept)
			if n < 0 || n > len(kept) {
				t.Fatalf("Data consumed %d of %d bytes", n, len(kept))
			}
			kept = append([]byte(nil), kept[n:]...)
			out, ended = p.Output(out)
			again = peer.again
		}
	}
	feed(nil)
	for _, n := range cuts {
		n := min(int(n), len(input))
		feed(bytes.Clone(input[:n]))
		input = input[n:]
	}
	feed(bytes.Clone(input))
	if !ended {
		fmt.Fprintf(&log, "%d bytes are kept\n", len(kept))
		p.End()
	}
	out, _ = p.Output(out)
	p.Closed()
	if peer.reserved != 0 || peer.charged != 0 {
		t.Errorf("%d bytes of input and %d of output are still charged", peer.reserved, peer.charged)
	}
	fmt.Fprintf(&log, "output %x\nend %+v", out, c.rare.end)
	return log.String()
}

// A fakePeer implements exchange.Peer and exchange.Turn, with a constant time.
type fakePeer struct {
	reserved, charged int64
	again             bool
}

func (p *fakePeer) Wake()                {}
func (p *fakePeer) WakeHere()            {}
func (p *fakePeer) Loop() exchange.Loop  { return nil }
func (p *fakePeer) Prompt() bool         { return true }
func (p *fakePeer) SetDeadline(int64)    {}
func (p *fakePeer) Pause(bool)           {}
func (p *fakePeer) Submit(exchange.Turn) {}
func (p *fakePeer) Log() *slog.Logger    { return slog.New(slog.NewTextHandler(io.Discard, nil)) }
func (p *fakePeer) Restarting() bool     { return false }
func (p *fakePeer) Charge(n int64)       { p.charged += n }
func (p *fakePeer) Release(n int64)      { p.reserved -= n }
func (p *fakePeer) Reserve(n int64) bool {
	p.reserved += n
	return true
}

func (p *fakePeer) Now() int64         { return 1 << 40 }
func (p *fakePeer) Clock() int64       { return 1 << 40 }
func (p *fakePeer) VisitTime() int64   { return 1 }
func (p *fakePeer) Inline() bool       { return true }
func (p *fakePeer) Draining() bool     { return false }
func (p *fakePeer) Spread() int64      { return 0 }
func (p *fakePeer) EnterPart(int)      {}
func (p *fakePeer) Leave() bool        { return true }
func (p *fakePeer) Watch(bool)         {}
func (p *fakePeer) Waited() bool       { return false }
func (p *fakePeer) Again()             { p.again = true }
func (p *fakePeer) Later()             { p.again = true }
func (p *fakePeer) AtCapacity() bool   { return false }
func (p *fakePeer) OverCapacity() bool { return false }
