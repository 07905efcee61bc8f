package exchange

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
)

// A Server is what an adapter knows of the server that it is a part of: settings, and what
// all adapters share. It is complete before the first connection, and does not change.
type Server struct {
	Settings

	Aside     *slog.Logger         // never blocks
	Shed      *admission.Shed      // what was refused or cut off, and why
	Addresses *admission.Addresses // connections by remote address; nil: no bound

	// Problem returns the error for an action that reads the body: the client is told
	// the status and the detail. The cause is for the log.
	Problem func(status int, detail string, cause error) error
}

// Settings are those of the configuration that adapters give effect to, with their
// defaults filled in.
type Settings struct {
	HeadTimeout, BodyTimeout, WriteTimeout, IdleTimeout time.Duration

	TCPKeepAlive time.Duration // below 0: none
	MinBodyRate  int           // bytes a second; below 0: none

	MaxHead    int // of a request, in bytes
	MaxHeaders int // of a request, in lines

	MaxRequestsPerConnection int // 0: no bound
	MaxConnections           int // 0: no bound
	MaxConnectionsPerAddress int // 0: no bound

	H2C bool // HTTP/2 is also taken in clear text
}

// NoteSlow counts a client that is cut off, and logs it now and then.
func (s *Server) NoteSlow(reason admission.Reason, remote netip.AddrPort, what string) {
	if n, due := s.Shed.Note(reason); due {
		s.Aside.Warn("slow clients cut off", "reason", what, "latest", remote, "count", n)
	}
}

// NoteSlowReader is NoteSlow for a client that took nothing of an answer.
func (s *Server) NoteSlowReader(remote netip.AddrPort) {
	s.NoteSlow(admission.SlowReader, remote, fmt.Sprintf("nothing of an answer was taken for %v", s.WriteTimeout))
}

// CutBody notes that a client is too slow with a body, and returns the error for who
// reads it: a 408 problem.
func (s *Server) CutBody(remote netip.AddrPort) error {
	what := s.SlowBody()
	s.NoteSlow(admission.SlowBody, remote, what)
	return s.Problem(http.StatusRequestTimeout, what, os.ErrDeadlineExceeded)
}
