package stdhttp

import (
	"net"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// A byteByByte consumes one byte in each call of Data and wakes its connection itself before Data returns, as an application
// does that reads a message while Data passes it.
type byteByByte struct {
	exchange.Protocol // the other methods are not called
	peer              exchange.Peer
	got               chan byte
}

func (p *byteByByte) Open(peer exchange.Peer)              { p.peer = peer }
func (p *byteByByte) Output(out []byte) (_ []byte, _ bool) { return out, false }
func (p *byteByByte) Unsent(int) int                       { return 0 }
func (p *byteByByte) End()                                 {}
func (p *byteByByte) Closed()                              {}
func (p *byteByByte) Data(_ exchange.Turn, in []byte) int {
	if len(in) == 0 {
		return 0
	}
	p.got <- in[0]
	p.peer.Wake()
	return 1
}

// A protocol that is woken while Data runs gets the rest of its input although it was never paused.
func TestSwitchedWakeDuringData(t *testing.T) {
	server, client := net.Pipe()
	closed := make(chan struct{})
	s := &switched{service: new(Service), p: &byteByByte{got: make(chan byte, 8)}, conn: server, done: func() { close(closed) }, start: time.Now()}
	s.resumed.L = &s.mu
	go s.run([]byte("ab"))
	if _, err := client.Write([]byte("cde")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []byte("abcde") {
		select {
		case got := <-s.p.(*byteByByte).got:
			if got != want {
				t.Fatalf("the protocol got %q, want %q", got, want)
			}
		case <-time.After(2 * time.Second):
			t.Fatalf("the protocol did not get %q", want)
		}
	}
	_ = client.Close()
	<-closed
}
