package stdhttp

import (
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// A holder is a request that holds memory. It has an account of its own, since a connection
// of HTTP/2 carries many. It belongs to its wire.
type holder struct {
	server *exchange.Server

	mu      sync.Mutex
	w       http.ResponseWriter
	account *admission.Account // nil when the request does not read its body any more

	client remote
}

// A remote is an address with a lock of its own. No other lock is taken under it: it is asked for under an
// account's lock, and the end of a request asks its account under the holder's.
type remote struct {
	mu   sync.Mutex
	addr netip.AddrPort
}

func (r *remote) set(addr netip.AddrPort) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addr = addr
}

// Account opens an account for the request.
func (x *wire) Account() *admission.Account {
	if x.holder == nil {
		x.holder = &holder{server: x.service.Server}
	}
	h := x.holder
	client := h.server.Client(x)
	h.client.set(client)
	a := h.server.Holders.Open(h, client.Addr())
	h.mu.Lock()
	defer h.mu.Unlock()
	h.w, h.account = x.w, a
	return a
}

// MayWait does nothing: the request has a goroutine of its own.
func (x *wire) MayWait() {}
func (x *wire) Waited()  {}

// ReleaseAccount closes it.
func (x *wire) ReleaseAccount(a *admission.Account) {
	h := x.holder
	h.mu.Lock()
	h.w, h.account = nil, nil
	h.mu.Unlock()
	if !a.CloseIdle() {
		a.Close()
	}
}

// RemoteAddr returns the address of the client.
func (h *holder) RemoteAddr() netip.AddrPort {
	h.client.mu.Lock()
	defer h.client.mu.Unlock()
	return h.client.addr
}

// End has the reading of the body fail. Servers other than net/http's may not be able to:
// then the body is read to its end.
func (h *holder) End(a *admission.Account) {
	go func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.account == a { // not the next request's
			h.server.NoteEnded(h.RemoteAddr(), a)
			_ = http.NewResponseController(h.w).SetReadDeadline(time.Unix(1, 0))
		}
	}()
}
