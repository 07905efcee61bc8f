package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

const (
	writersToNode  = 64                    // connections to a node for writes that wait for replicas
	writerIdle     = time.Minute           // unused connections of this kind are closed after this time
	longestWait    = 10 * time.Second      // maximum wait for replicas if the call has no deadline
	shortestAnswer = 10 * time.Millisecond // part of the call's time that is reserved for the reply to WAIT
	beforeRedirect = 25 * time.Millisecond // pause in which the client learns the new nodes of keys
)

// ErrUnconfirmed reports a write that Redis executed, but that fewer replicas than Config.Replicas confirmed. The write may be
// lost if the master fails now.
var ErrUnconfirmed = errors.New("not confirmed by the replicas")

// write sends a command that writes the key of its slot. It returns the reply of Redis when the configured number of replicas
// has confirmed the write. WAIT covers the writes of its own connection only, so both commands use one dedicated connection.
//
// rueidis ignores ctx while it waits for such a connection or makes one. The caller then returns at its deadline, and the place
// remains occupied until rueidis has finished. command is called on another goroutine, possibly after write has returned.
func (s *redisStore) write(ctx context.Context, l *link, key string, command func(rueidis.Builder) rueidis.Completed) rueidis.RedisResult {
	if s.replicas == 0 {
		return l.client.Do(ctx, command(l.client.B()))
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, longestWait)
		defer cancel()
	}
	writers := s.writers[s.Shard(key, false)]
	select {
	case writers <- struct{}{}:
	case <-ctx.Done():
		return rueidis.NewErrorResult(ctx.Err())
	}
	var written atomic.Bool
	done := make(chan rueidis.RedisResult, 1)
	go func() {
		defer func() { <-writers }()
		done <- s.writeConfirmed(ctx, command, &written)
	}()
	select {
	case answer := <-done:
		return answer
	case <-ctx.Done():
		if written.Load() {
			return rueidis.NewErrorResult(unconfirmed(ctx.Err()))
		}
		return rueidis.NewErrorResult(ctx.Err())
	}
}

// writeConfirmed is like write, on a dedicated connection. It sets written when Redis has executed the command.
func (s *redisStore) writeConfirmed(ctx context.Context, command func(rueidis.Builder) rueidis.Completed, written *atomic.Bool) rueidis.RedisResult {
	l := s.use() // held until rueidis has finished
	defer l.calls.RUnlock()
	for {
		var answer rueidis.RedisResult
		err := l.client.Dedicated(func(c rueidis.DedicatedClient) error {
			if answer = c.Do(ctx, command(c.B())); answer.Error() != nil {
				return nil // nothing was written, or the result is unknown
			}
			written.Store(true)
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

// isRedirect reports whether Redis did not execute the command because the key is stored on another node.
func isRedirect(answer *rueidis.RedisError) bool {
	_, moved := answer.IsMoved()
	_, asks := answer.IsAsk()
	return moved || asks
}

// confirm waits until replicas have confirmed the writes of the connection. WAIT ends before ctx does. Otherwise the connection
// would be lost.
func (s *redisStore) confirm(ctx context.Context, c rueidis.DedicatedClient) error {
	deadline, _ := ctx.Deadline()
	wait := time.Until(deadline)
	wait -= max(shortestAnswer, wait/10)
	millis := strconv.FormatInt(max(wait.Milliseconds(), 1), 10) // 0 would mean no limit
	n, err := c.Do(ctx, c.B().Arbitrary("WAIT").Args(strconv.Itoa(s.replicas), millis).Blocking()).AsInt64()
	if err != nil {
		return unconfirmed(err)
	}
	if n < int64(s.replicas) {
		return refused(fmt.Errorf("store/redis: %w: %d of %d have", ErrUnconfirmed, n, s.replicas))
	}
	return nil
}

func unconfirmed(err error) error { return fmt.Errorf("store/redis: %w: %w", ErrUnconfirmed, err) }
