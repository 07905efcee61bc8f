package stdhttp

import (
	"net/netip"
	"testing"
)

// A list of holders asks for an address under an account's lock, and ending a holder asks the account under the holder's lock.
// So the address must not need the holder's lock.
func TestHolderAddressDuringEviction(t *testing.T) {
	h := new(holder)
	addr := netip.MustParseAddrPort("192.0.2.1:80")
	h.client.set(addr)
	h.mu.Lock()
	defer h.mu.Unlock()
	if got := h.RemoteAddr(); got != addr {
		t.Errorf("RemoteAddr() = %v", got)
	}
}
