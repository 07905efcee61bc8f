package exchange

import (
	"github.com/dunlinhttp/dunlin/internal/semantics"
	"github.com/dunlinhttp/dunlin/internal/tally"
)

// The bits of a [tally.Outcome], by which requests are counted:
//
//	0-2   the class of the status, 0 for none
//	3-9   the rest of the status, or noStatus
//	10-13 the method
//	14    whether the client has used TLS
//	15    only the class is known
const (
	outcomeStatus = 3
	outcomeMethod = 10
	outcomeSecure = 1 << 14

	noStatus = 127
)

// Outcome returns the outcome of a request that ends with the answer a.
func (s *State) Outcome(a *Answer, secure bool) tally.Outcome {
	status := a.Status()
	if a.Class() == 0 {
		status = 0
	}
	return OutcomeOf(status, semantics.MethodOf(s.Method), secure)
}

// OutcomeOf returns the outcome of requests that end with the given status. The status 0 means no answer.
func OutcomeOf(status int, method semantics.Method, secure bool) tally.Outcome {
	class := min(status/100, ServerError) // standard handlers may use statuses from 600
	rest := status - 100*class
	if class == 0 || rest > 99 {
		rest = noStatus
	}
	o := tally.Outcome(class) | tally.Outcome(rest)<<outcomeStatus | tally.Outcome(method)<<outcomeMethod
	if secure {
		o |= outcomeSecure
	}
	return o
}

// Ended describes requests that were counted together.
type Ended struct {
	Method  string // "" if unknown
	Status  int    // 0: none or unknown
	Dropped bool   // the answer was not sent completely
	Secure  bool
	Latency tally.Latencies
}

// EndedOf decodes the outcome of requests.
func EndedOf(e tally.Ended) Ended {
	o := e.Outcome
	known := Ended{Dropped: o.Class() == 0, Secure: o&outcomeSecure != 0, Method: semantics.Method(o >> outcomeMethod & 15).String(), Latency: e.Latency}
	if rest := o >> outcomeStatus & noStatus; rest != noStatus && !known.Dropped && o&tally.Untold == 0 {
		known.Status = 100*int(o.Class()) + int(rest)
	}
	return known
}
