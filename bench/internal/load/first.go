package load

import (
	"context"
	"fmt"
	"time"
)

// firstAnswerPoll is how often a server that does not answer yet is asked again: start-up times are
// no finer than this.
const firstAnswerPoll = 100 * time.Microsecond

// FirstAnswer asks until the server at addr answers.
func FirstAnswer(ctx context.Context, addr, path string) error {
	c := client{addr: addr, request: requestFor(addr, path)}
	defer c.close()
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(dialTimeout)
	}
	for {
		status, err := c.do(deadline)
		if err == nil && status < 500 {
			return nil
		}
		c.close()
		select {
		case <-ctx.Done():
			return fmt.Errorf("no answer from %s: %w", addr, ctx.Err())
		case <-time.After(firstAnswerPoll):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("no answer from %s: status %d, error %v", addr, status, err)
		}
	}
}
