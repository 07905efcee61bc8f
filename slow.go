package dunlin

import (
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
)

// A bodyPace judges how fast a request body comes. Only the time counts in which
// the server waits for more of it, so that an action may take its time between
// reads. The zero value begins a body.
type bodyPace struct {
	waited time.Duration // in the present period of BodyTimeout
	came   int64         // bytes meanwhile
}

// left returns how long may be waited until the next judgement.
func (p *bodyPace) left(c *Config) time.Duration { return max(c.BodyTimeout-p.waited, 1) }

// tooSlow notes that bytes came after a wait, and reports whether a period is over
// that has brought too few.
func (p *bodyPace) tooSlow(c *Config, waited time.Duration, came int64) bool {
	p.waited += waited
	p.came += came
	if p.waited < c.BodyTimeout {
		return false
	}
	least := max(float64(c.MinBodyRate)*c.BodyTimeout.Seconds(), 1)
	slow := float64(p.came) < least
	*p = bodyPace{}
	return slow
}

// slowBody says what a client did whose body came too slowly.
func (c *Config) slowBody() string {
	if c.MinBodyRate < 0 {
		return fmt.Sprintf("nothing of the request body came for %v", c.BodyTimeout)
	}
	return fmt.Sprintf("the request body came at fewer than %d bytes a second over %v", c.MinBodyRate, c.BodyTimeout)
}

// cutBody notes that a client is too slow with a body, and returns the error for who
// reads it: a 408 problem.
func (a *App) cutBody(remote netip.AddrPort) error {
	what := a.config.slowBody()
	a.noteSlow(admission.SlowBody, remote, what)
	return &ProblemDetails{Status: http.StatusRequestTimeout, Detail: what, Cause: os.ErrDeadlineExceeded}
}

// slowHead says what a client did whose head took too long.
func (c *Config) slowHead() string {
	return fmt.Sprintf("the request head did not arrive in whole within %v", c.HeadTimeout)
}

// noteSlow counts a client that is cut off, and logs it now and then.
func (a *App) noteSlow(reason admission.Reason, remote netip.AddrPort, what string) {
	if n, due := a.shed.Note(reason); due {
		a.aside.Warn("slow clients cut off", "reason", what, "latest", remote, "count", n)
	}
}
