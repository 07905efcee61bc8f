package stdhttp

import (
	"net/netip"
	"testing"
)

// Who lists holders has locked an account when it asks for an address, and who ends one asks that account under the holder's lock:
// the address must not need that.
func TestAddressOfAHolderThatIsEnded(t *testing.T) {
	h := new(holder)
	addr := netip.MustParseAddrPort("192.0.2.1:80")
	h.client.set(addr)
	h.mu.Lock()
	defer h.mu.Unlock()
	if got := h.RemoteAddr(); got != addr {
		t.Errorf("RemoteAddr() = %v", got)
	}
}
