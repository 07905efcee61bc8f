package exchange

import (
	"fmt"
	"time"
)

// A BodyPace checks the rate of a request body. Only the time that the server waits for the body counts, so that an action may
// pause between reads. The zero value begins a body.
type BodyPace struct {
	waited time.Duration // in the current period of BodyTimeout
	came   int64         // bytes that arrived in the current period
}

// Left returns how long the server may still wait in the current period.
func (p *BodyPace) Left(s *Settings) time.Duration { return max(s.BodyTimeout-p.waited, 1) }

// Came records bytes that arrived without waiting.
func (p *BodyPace) Came(bytes int64) { p.came += bytes }

// TooSlow records a wait and the bytes that arrived after it, and reports whether a period has ended with too few bytes.
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

// SlowBody describes a client that sent its body too slowly.
func (s *Settings) SlowBody() string {
	if s.MinBodyRate < 0 {
		return fmt.Sprintf("no bytes of the request body arrived for %v", s.BodyTimeout)
	}
	return fmt.Sprintf("the request body arrived at fewer than %d bytes a second over %v", s.MinBodyRate, s.BodyTimeout)
}

// SlowHead describes a client that sent its head too slowly.
func (s *Settings) SlowHead() string {
	return fmt.Sprintf("the request head did not arrive completely within %v", s.HeadTimeout)
}
