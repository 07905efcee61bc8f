//go:build linux

package load

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sys/unix"
)

// firstAnswerPoll is the interval between requests to a server that does not yet answer. Start-up times are measured with this
// resolution.
const firstAnswerPoll = 100 * time.Microsecond

// pause waits for firstAnswerPoll. It does not use a timer, because in an idle process the runtime waits for whole
// milliseconds, which are a third of a start-up time.
func pause() {
	left := unix.NsecToTimespec(int64(firstAnswerPoll))
	_ = unix.Nanosleep(&left, nil) // a signal may end the wait early, which does no harm
}

// FirstAnswer sends requests until the server at addr answers one.
func FirstAnswer(ctx context.Context, addr, path string) error {
	return firstAnswer(ctx, client{addr: addr, request: requestFor(addr, path)})
}

// FirstAnswerTLS is FirstAnswer over TLS.
func FirstAnswerTLS(ctx context.Context, addr, path string) error {
	return firstAnswer(ctx, client{addr: addr, request: requestFor(addr, path), byTLS: true})
}

// FirstAnswerH2 returns a function that is FirstAnswer over HTTP/2, with TLS or in clear text.
func FirstAnswerH2(byTLS bool) func(ctx context.Context, addr, path string) error {
	return func(ctx context.Context, addr, path string) error {
		transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, Protocols: new(http.Protocols)}
		transport.Protocols.SetHTTP2(byTLS)
		transport.Protocols.SetUnencryptedHTTP2(!byTLS)
		defer transport.CloseIdleConnections()
		scheme := "http://"
		if byTLS {
			scheme = "https://"
		}
		for {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+addr+path, nil)
			if err != nil {
				return err
			}
			answer, err := transport.RoundTrip(request)
			if err == nil {
				answer.Body.Close()
				if answer.StatusCode < 500 {
					return nil
				}
				err = fmt.Errorf("status %d", answer.StatusCode)
			}
			if ctx.Err() != nil {
				return fmt.Errorf("no answer from %s: %w", addr, err)
			}
			pause()
		}
	}
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
		if ctx.Err() != nil {
			return fmt.Errorf("no answer from %s: %w", c.addr, ctx.Err())
		}
		pause()
		if time.Now().After(deadline) {
			return fmt.Errorf("no answer from %s: status %d, error %v", c.addr, status, err)
		}
	}
}
