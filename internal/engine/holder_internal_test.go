//go:build linux

package engine

import (
	"net/netip"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/memory"
)

// A message that ends an account cancels the request of a connection that is away only while that account is the
// connection's and is being ended: the message may arrive during a later request.
func TestLateEvictionDoesNotCancelNextRequest(t *testing.T) {
	budget := memory.New(1 << 20)
	budget.SetCaps(1<<10, 0, 0)
	for name, c := range map[string]struct{ current, ending, want bool }{
		"an earlier account":                 {current: false, ending: true, want: false},
		"the account, no longer being ended": {current: true, ending: false, want: false},
		"the account, being ended":           {current: true, ending: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			conn := &Conn{}
			conn.state.Store(away)
			canceled := false
			conn.setHangup(&hangup{func() { canceled = true }, false})
			a := budget.Open(endedHolder{}, netip.Addr{})
			conn.acct.Store(a)
			if !c.current {
				conn.acct.Store(budget.Open(endedHolder{}, netip.Addr{}))
			}
			if c.ending {
				a.Force(memory.Body, 2<<10) // above the bound of one connection
				if !a.Evicted() {
					t.Fatal("the account is not being ended")
				}
			}
			if drives := (&loop{}).endHolder(nil, conn, a); !drives || canceled != c.want {
				t.Errorf("the driver drives on: %v; the request is canceled: got %v, want %v", drives, canceled, c.want)
			}
		})
	}
}

type endedHolder struct{}

func (endedHolder) End(*memory.Account)        {}
func (endedHolder) RemoteAddr() netip.AddrPort { return netip.AddrPort{} }
