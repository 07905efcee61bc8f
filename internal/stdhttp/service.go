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

// A Service is the state that the servers of an app share, and the adapter between net/http and the pipeline.
type Service struct {
	*exchange.Server
	wires    sync.Pool     // of *wire
	made     atomic.Uint32 // number of wires that were created
	slots    chan struct{} // contains a value for each open connection; nil if the number is not limited
	open     atomic.Int64
	accepted atomic.Uint64
	pauses   pauses
	freed    chan struct{} // receives a value when a connection was closed

	lines admission.Lines // for the log output of net/http

	mu      sync.Mutex
	servers []*Server

	spread   atomic.Int64           // see exchange.Turn
	switched map[*switched]struct{} // connections that have switched to another protocol
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

// Connections returns the number of open connections, the numbers of accepted connections and of pauses in
// accepting, and the duration of the current pause. It is safe for concurrent use.
func (s *Service) Connections() (open int, accepted, pauses uint64, paused time.Duration) {
	return int(s.open.Load()), s.accepted.Load(), s.pauses.count.Load(), s.pauses.lasting()
}

// serve answers a request of a Server.
func (s *Service) serve(w http.ResponseWriter, req *http.Request) {
	draining := s.Pipeline.IsDraining()
	if draining || s.H2C {
		noteRequest(req)
	}
	if s.MaxRequestsPerConnection > 0 && s.lastOfConnection(req) || draining || req.Method == http.MethodConnect && req.ProtoMajor == 1 {
		// For HTTP/2, net/http sends a GOAWAY instead of this field.
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

// lastOfConnection counts a request, and reports whether it is the last one that the connection may carry.
func (s *Service) lastOfConnection(req *http.Request) bool {
	c, counted := req.Context().Value(connKey{}).(*timedConn)
	return counted && c.requests.Add(1) >= int64(s.MaxRequestsPerConnection)
}

func (s *Service) freeSlot() {
	if s.slots != nil {
		<-s.slots
	}
}

// closed records the end of a connection that Accept has returned.
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
