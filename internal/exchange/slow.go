package exchange

import (
	"fmt"
	"time"
)

// A BodyPace judges how fast a request body comes. Only the time counts in which
// the server waits for more of it, so that an action may take its time between
// reads. The zero value begins a body.
type BodyPace struct {
	waited time.Duration // in the present period of BodyTimeout
	came   int64         // bytes meanwhile
}

// Left returns how long may be waited until the next judgement.
func (p *BodyPace) Left(s *Settings) time.Duration { return max(s.BodyTimeout-p.waited, 1) }

// Came notes that bytes came without a wait that counts.
func (p *BodyPace) Came(bytes int64) { p.came += bytes }

// TooSlow notes that bytes came after a wait, and reports whether a period is over
// that has brought too few.
func (p *BodyPace) TooSlow(s *Settings, waited time.Duration, came int64) bool {
	p.waited += waited
	p.came += came
	if p.waited < s.BodyTimeout {
		return false
	}
	least := max(float64(s.MinBodyRate)*s.BodyTimeout.Seconds(), 1)
	slow := float64(p.came) < least
	*p = BodyPace{}
	return slow
}

// SlowBody says what a client did whose body came too slowly.
func (s *Settings) SlowBody() string {
	if s.MinBodyRate < 0 {
		return fmt.Sprintf("nothing of the request body came for %v", s.BodyTimeout)
	}
	return fmt.Sprintf("the request body came at fewer than %d bytes a second over %v", s.MinBodyRate, s.BodyTimeout)
}

// SlowHead says what a client did whose head took too long.
func (s *Settings) SlowHead() string {
	return fmt.Sprintf("the request head did not arrive in whole within %v", s.HeadTimeout)
}
