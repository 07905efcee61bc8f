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
	return firstAnswer(ctx, client{addr: addr, request: requestFor(addr, path)})
}

// FirstAnswerTLS is FirstAnswer by TLS.
func FirstAnswerTLS(ctx context.Context, addr, path string) error {
	return firstAnswer(ctx, client{addr: addr, request: requestFor(addr, path), byTLS: true})
}

func firstAnswer(ctx context.Context, c client) error {
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
			return fmt.Errorf("no answer from %s: %w", c.addr, ctx.Err())
		case <-time.After(firstAnswerPoll):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("no answer from %s: status %d, error %v", c.addr, status, err)
		}
	}
}
