//go:build !unix

package lifecycle

import (
	"errors"
	"os"
)

// This system has no inherited listeners and no handover.

type inheritance struct {
	listeners []inheritedListener
	secrets   []byte
}

func inherit(bool) (inheritance, error) { return inheritance{}, nil }

func (*inheritance) isSuccessor() bool { return false }

func (*inheritance) tellReady() {}

// hangups never receive a signal.
type hangups struct {
	c     chan os.Signal
	nohup bool
}

func newHangups(bool) *hangups { return new(hangups) }

func (*hangups) close() {}

func (*hangups) terminalGone() bool { return false }

type successor struct{}

func (*hangups) startSuccessor([]Endpoint, []byte) (*successor, error) {
	return nil, errors.New("restarting needs a unix system")
}

func (*successor) pid() int { return 0 }

func (*successor) outcome() <-chan error { return nil }

func (*successor) abandon() {}
