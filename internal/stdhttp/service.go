package stdhttp

import (
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// A Service is what the servers of one app have in common, and the adapter between
// net/http and the pipeline.
type Service struct {
	*exchange.Server
	wires    sync.Pool     // of *wire
	made     atomic.Uint32 // wires
	slots    chan struct{} // holds one for each open connection; nil: no bound
	open     atomic.Int64
	accepted atomic.Uint64
	pauses   pauses
	freed    chan struct{} // holds something after a connection has ended

	lines admission.Lines // what net/http logs

	mu      sync.Mutex
	servers []*Server
}

// NewService returns a service without servers.
func NewService(server *exchange.Server) *Service {
	s := &Service{Server: server, freed: make(chan struct{}, 1)}
	s.wires.New = func() any { return s.newWire() }
	if server.MaxConnections > 0 {
		s.slots = make(chan struct{}, server.MaxConnections)
	}
	return s
}

// Connections returns how many connections are open, how many have been accepted, how often accepting has paused
// and for how long it does now. It may be called at any time.
func (s *Service) Connections() (open int, accepted, pauses uint64, paused time.Duration) {
	return int(s.open.Load()), s.accepted.Load(), s.pauses.count.Load(), s.pauses.lasting()
}

// serve answers a request.
func (s *Service) serve(w http.ResponseWriter, req *http.Request) {
	draining := s.Pipeline.IsDraining()
	if draining || s.H2C {
		noteAsked(req)
	}
	if s.MaxRequestsPerConnection > 0 && s.lastOfConnection(req) || draining || req.Method == http.MethodConnect && req.ProtoMajor == 1 {
		// HTTP/2 makes a GOAWAY of it.
		w.Header().Set("Connection", "close")
	}
	if len(req.Header) > s.MaxHeaders {
		s.tooManyHeaders(w, req)
		return
	}
	if req.ProtoMajor == 2 {
		trimFields(req.Header)
		if what := malformed(req); what != "" {
			s.refuse(w, req, http.StatusBadRequest, what)
			return
		}
		if expectsOther(req) {
			s.refuse(w, req, http.StatusExpectationFailed, "expectation other than 100-continue")
			return
		}
		s.serveStream(w, req)
		return
	}
	s.answer(w, req, true)
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

// closed is told of the end of a connection that Accept returned.
func (s *Service) closed(conn net.Conn) {
	s.freeSlot()
	select {
	case s.freed <- struct{}{}:
	default:
	}
	if own := connOf(conn); own != nil {
		s.Addresses.Release(own.counted)
	}
}
