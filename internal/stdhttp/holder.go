package stdhttp

import (
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/memory"
)

// A holder is a request for which memory is charged. It has its own account, because an HTTP/2 connection carries many
// requests. It belongs to the wire of the request.
type holder struct {
	server *exchange.Server

	mu      sync.Mutex
	w       http.ResponseWriter
	account *memory.Account // nil after ReleaseAccount

	client remote
}

// A remote is an address with a lock. No other lock must be acquired while this lock is held: RemoteAddr is called while
// the lock of an account is held, and also while the method End holds the lock of the holder.
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
func (x *wire) Account() *memory.Account {
	if x.holder == nil {
		x.holder = &holder{server: x.service.Server}
	}
	h := x.holder
	client := h.server.Client(x)
	h.client.set(client)
	a := h.server.Budget.Open(h, client.Addr())
	h.mu.Lock()
	defer h.mu.Unlock()
	h.w, h.account = x.w, a
	return a
}

// MayWait and Waited do nothing, because the request has a goroutine of its own.
func (x *wire) MayWait() {}
func (x *wire) Waited()  {}

// ReleaseAccount closes the account a.
func (x *wire) ReleaseAccount(a *memory.Account) {
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

// End makes reads of the body fail. This may be impossible if the server is not a Server. The body is then read completely.
func (h *holder) End(a *memory.Account) {
	go func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.account == a { // otherwise the account belongs to the next request
			h.server.NoteEnded(h.RemoteAddr(), a)
			_ = http.NewResponseController(h.w).SetReadDeadline(time.Unix(1, 0))
		}
	}()
}
