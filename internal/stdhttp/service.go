package stdhttp

import (
	"net"
	"net/http"
	"sync/atomic"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// An App is what is served.
type App struct {
	*exchange.Server

	Handler http.Handler
	// TooManyHeaders answers a request with more headers than MaxHeaders.
	TooManyHeaders http.HandlerFunc
	// IsDraining reports whether every answer that begins closes its connection.
	IsDraining func() bool
	// AddressRefusal is the whole answer to a connection that is one too many from its
	// address.
	AddressRefusal []byte
}

// A Service is what the servers of one app have in common.
type Service struct {
	App
	slots    chan struct{} // holds one for each open connection; nil: no bound
	open     atomic.Int64
	accepted atomic.Uint64
}

// NewService returns a service without servers.
func NewService(app App) *Service {
	s := &Service{App: app}
	if app.MaxConnections > 0 {
		s.slots = make(chan struct{}, app.MaxConnections)
	}
	return s
}

// Connections returns how many connections are open, and how many have been accepted. It
// may be called at any time.
func (s *Service) Connections() (open int, accepted uint64) {
	return int(s.open.Load()), s.accepted.Load()
}

// serve answers a request.
func (s *Service) serve(w http.ResponseWriter, req *http.Request) {
	if s.MaxRequestsPerConnection > 0 && s.lastOfConnection(req) || s.IsDraining() {
		// HTTP/2 makes a GOAWAY of it.
		w.Header().Set("Connection", "close")
	}
	if len(req.Header) > s.MaxHeaders {
		s.TooManyHeaders(w, req)
		return
	}
	if req.ProtoMajor == 2 {
		s.serveStream(w, req)
		return
	}
	s.Handler.ServeHTTP(w, req)
}

// lastOfConnection counts a request, and reports whether its connection may carry
// no other.
func (s *Service) lastOfConnection(req *http.Request) bool {
	c, counted := req.Context().Value(connKey{}).(*timedConn)
	return counted && c.requests.Add(1) >= int64(s.MaxRequestsPerConnection)
}

func (s *Service) freeSlot() {
	if s.slots != nil {
		<-s.slots
	}
}

// gone is told of the end of a connection that Accept returned.
func (s *Service) gone(conn net.Conn) {
	s.freeSlot()
	if s.Addresses != nil {
		s.Addresses.Release(addrPortOf(conn).Addr())
	}
}
