package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

const (
	writersToNode  = 64                    // connections to a node on which writes wait for replicas
	longestWait    = 10 * time.Second      // for replicas, where the call has no deadline
	beforeRedirect = 25 * time.Millisecond // in which the client learns where keys have gone
)

// ErrUnconfirmed is the error of a write that Redis has carried out and that fewer replicas have confirmed than Config.Replicas says: it
// may be lost if the master fails now.
var ErrUnconfirmed = errors.New("not confirmed by the replicas")

// write sends a command that writes the key of its slot, and returns what Redis answers as soon as so many replicas as are asked for
// have it, too. WAIT is about what its own connection has written: both go over one that nobody else has meanwhile.
func (s *redisStore) write(ctx context.Context, command func(rueidis.Builder) rueidis.Completed) rueidis.RedisResult {
	if s.replicas == 0 {
		return s.client.Do(ctx, command(s.client.B()))
	}
	for {
		var answer rueidis.RedisResult
		err := s.client.Dedicated(func(c rueidis.DedicatedClient) error {
			if answer = c.Do(ctx, command(c.B())); answer.Error() != nil {
				return nil // nothing is written, or nobody knows
			}
			return s.confirm(ctx, c)
		})
		if err != nil {
			return rueidis.NewErrorResult(err)
		}
		if moved, ok := rueidis.IsRedisErr(answer.Error()); !ok || !isRedirect(moved) {
			return answer
		}
		select {
		case <-time.After(beforeRedirect):
		case <-ctx.Done():
			return answer
		}
	}
}

// isRedirect reports whether Redis has done nothing, because another node has the key.
func isRedirect(answer *rueidis.RedisError) bool {
	_, moved := answer.IsMoved()
	_, asks := answer.IsAsk()
	return moved || asks
}

// confirm waits until replicas have what was written on the connection.
func (s *redisStore) confirm(ctx context.Context, c rueidis.DedicatedClient) error {
	wait := longestWait
	if deadline, ok := ctx.Deadline(); ok {
		wait = time.Until(deadline)
	}
	millis := strconv.FormatInt(max(wait.Milliseconds(), 1), 10) // 0 would be for ever
	n, err := c.Do(ctx, c.B().Arbitrary("WAIT").Args(strconv.Itoa(s.replicas), millis).Build()).AsInt64()
	if err != nil {
		return fmt.Errorf("store/redis: %w: %w", ErrUnconfirmed, err)
	}
	if n < int64(s.replicas) {
		return fmt.Errorf("store/redis: %w: %d of %d have", ErrUnconfirmed, n, s.replicas)
	}
	return nil
}
