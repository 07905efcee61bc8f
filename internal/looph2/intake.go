//go:build linux

package looph2

import (
	"net/http"

	"github.com/dunlinhttp/dunlin/internal/request"
)

// An intake is the state of the arrival of a request: see the package's documentation. It belongs to the loop until the action
// begins, and does not change afterwards.
type intake uint8

const (
	bare intake = iota
	gathering
	gathered
	streamed
	refused
)

type intakeEvent uint8

const (
	gather intakeEvent = iota
	complete
	streamBody
	refuse
	intakeEvents
)

var intakes = [...][intakeEvents]intake{
	bare:      {gather: gathering, streamBody: streamed, refuse: refused},
	gathering: {complete: gathered, streamBody: streamed, refuse: refused},
	gathered:  {},
	streamed:  {},
	refused:   {},
}

// on makes the transition of an event.
func (i *intake) on(e intakeEvent) { *i = request.Next(*i, intakes[*i][e], e) }

// A kind is a kind of request with rules of its own.
type kind uint8

const (
	ordinary kind = iota
	headOnly      // HEAD: the answer has no body
	tunnel        // an extended CONNECT, whose body carries another protocol
)

// kindOf returns the kind of a request.
func kindOf(method, protocol []byte) kind {
	switch {
	case len(protocol) > 0:
		return tunnel
	case string(method) == http.MethodHead:
		return headOnly
	}
	return ordinary
}
