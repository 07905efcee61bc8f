package lifecycle

import (
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"
)

// process is the state that the apps of this process share.
var process processState

type processState struct {
	mu        sync.Mutex
	running   *Program // program of Run
	inherited inheritance
	listening []net.Listener // listeners of ListenShared
}

// unclaimedFor is the time after the start of Run within which an app must claim a listener of the previous process by
// ListenShared. Later the listener is closed.
var unclaimedFor = 10 * time.Second

// begin makes p the running program and takes the inherited state. Only one program can run.
func (s *processState) begin(p *Program) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.running; other != nil {
		panic(fmt.Sprintf("dunlin: Run for %s (%v), while Run for %s (%v) has not returned: a process has one Run, which "+
			"handles signals and restarts; use Inner for an inner address, and ListenAndServe or Serve for another app", p.Addr, p.At, other.Addr, other.At))
	}
	s.running = p
	return s.inherit(false)
}

func (s *processState) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = nil
}

// inherit takes the inherited state, unless it was taken before. s.mu is held.
func (s *processState) inherit(successor bool) error {
	in, err := inherit(successor)
	if err != nil {
		return fmt.Errorf("inherited listeners: %w", err)
	}
	if len(in.listeners) > 0 || in.isSuccessor() {
		s.inherited = in
	}
	return nil
}

// takeSecrets returns the secrets of the previous process, once.
func (s *processState) takeSecrets() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.inherited.secrets
	s.inherited.secrets = nil
	return b
}

// claim returns the inherited listeners that match an address, see matches, and removes them from the state.
func (s *processState) claim(addr, name, anyPort string) (claimed []inheritedListener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inherited.listeners = slices.DeleteFunc(s.inherited.listeners, func(in inheritedListener) bool {
		if !in.matches(addr, name, anyPort) {
			return false
		}
		claimed = append(claimed, in)
		return true
	})
	return claimed
}

// ready informs the previous process that Run serves. It closes the unclaimed listeners: those of systemd now, those of the
// previous process after unclaimedFor.
func (s *processState) ready(log *slog.Logger) {
	s.mu.Lock()
	defer s.mu.Unlock()
	successor := s.inherited.isSuccessor()
	s.inherited.tellReady()
	switch {
	case len(s.inherited.listeners) == 0:
	case successor:
		time.AfterFunc(unclaimedFor, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.closeUnclaimed(log)
		})
	default:
		s.closeUnclaimed(log)
	}
}

// closeUnclaimed closes the unclaimed inherited listeners. s.mu is held.
func (s *processState) closeUnclaimed(log *slog.Logger) {
	for _, in := range s.inherited.listeners {
		log.Warn("an inherited listener is closed: it is bound to no address of this process, and not named http, https or inner",
			"addr", in.Addr().String(), "name", in.name)
		_ = in.Close()
	}
	s.inherited.listeners = nil
}

// shared returns the open listeners of ListenShared.
func (s *processState) shared() []net.Listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.listening)
}

// ListenShared is Listen for an address that is served in addition to Run. The listener may be inherited from the previous
// process, and is passed to the next one unless done was called. If the system chooses the port, the listener is neither
// inherited nor passed on.
func ListenShared(addr string) (ln net.Listener, done func(), err error) {
	return process.listen(addr)
}

func (s *processState) listen(addr string) (ln net.Listener, done func(), err error) {
	s.mu.Lock()
	err = s.inherit(true)
	s.mu.Unlock()
	if err != nil {
		return nil, nil, err
	}
	if in := s.claim(addr, "", ""); len(in) > 0 {
		ln = in[0].Listener
		for _, other := range in[1:] { // further listeners on the same address cannot exist
			_ = other.Close()
		}
	} else if ln, err = Listen(addr); err != nil {
		return nil, nil, err
	}
	if hasAnyPort(addr) {
		return ln, func() {}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listening = append(s.listening, ln)
	return ln, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.listening = slices.DeleteFunc(s.listening, func(l net.Listener) bool { return l == ln })
	}, nil
}
