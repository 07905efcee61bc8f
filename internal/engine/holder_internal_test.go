//go:build linux

package engine

import (
	"net/netip"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/admission"
)

// A message that ends an account cancels the request of a connection that is away only while that account is the
// connection's and is being ended: the message may arrive during a later request.
func TestLateEvictionDoesNotCancelNextRequest(t *testing.T) {
	holders := admission.NewHolders(admission.NewBudget(1<<20), admission.Clock())
	holders.MaxConnection = 1 << 10
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
			a := holders.Open(endedHolder{}, netip.Addr{})
			conn.acct.Store(a)
			if !c.current {
				conn.acct.Store(holders.Open(endedHolder{}, netip.Addr{}))
			}
			if c.ending {
				a.Force(admission.Body, 2<<10) // above the bound of one connection
				if !a.Ending() {
					t.Fatal("the account is not being ended")
				}
			}
			if drives := (&loop{}).endHolder(nil, conn, a); !drives || canceled != c.want {
				t.Errorf("the driver drives on: %v; the request is canceled: %v, want %v", drives, canceled, c.want)
			}
		})
	}
}

type endedHolder struct{}

func (endedHolder) End(*admission.Account)     {}
func (endedHolder) RemoteAddr() netip.AddrPort { return netip.AddrPort{} }
