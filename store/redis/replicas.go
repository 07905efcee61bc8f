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
	writersToNode  = 64                    // connections to a node on which writes wait for replicas
	writerIdle     = time.Minute           // after which such connections that nobody uses are closed
	longestWait    = 10 * time.Second      // of a write for replicas, where the call has no deadline
	shortestAnswer = 10 * time.Millisecond // that WAIT leaves of the call's time for its answer
	beforeRedirect = 25 * time.Millisecond // in which the client learns where keys have gone
)

// ErrUnconfirmed is the error of a write that Redis has carried out and that fewer replicas have confirmed than Config.Replicas says: it
// may be lost if the master fails now.
var ErrUnconfirmed = errors.New("not confirmed by the replicas")

// write sends a command that writes the key of its slot, and returns what Redis answers as soon as so many replicas as are asked for
// have it, too. WAIT is about what its own connection has written: both go over one that nobody else has meanwhile.
//
// rueidis does not heed ctx while it waits for such a connection or makes one: the caller leaves when its time is over, and the place
// is taken until rueidis is done. command is called on another goroutine, also after write has returned.
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

// writeConfirmed is write on a connection of its own. It sets written when Redis has carried out the command.
func (s *redisStore) writeConfirmed(ctx context.Context, command func(rueidis.Builder) rueidis.Completed, written *atomic.Bool) rueidis.RedisResult {
	l := s.use() // until rueidis is done
	defer l.calls.RUnlock()
	for {
		var answer rueidis.RedisResult
		err := l.client.Dedicated(func(c rueidis.DedicatedClient) error {
			if answer = c.Do(ctx, command(c.B())); answer.Error() != nil {
				return nil // nothing is written, or nobody knows
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

// isRedirect reports whether Redis has done nothing, because another node has the key.
func isRedirect(answer *rueidis.RedisError) bool {
	_, moved := answer.IsMoved()
	_, asks := answer.IsAsk()
	return moved || asks
}

// confirm waits until replicas have what was written on the connection. WAIT ends before ctx does, or the connection would be lost with it.
func (s *redisStore) confirm(ctx context.Context, c rueidis.DedicatedClient) error {
	deadline, _ := ctx.Deadline()
	wait := time.Until(deadline)
	wait -= max(shortestAnswer, wait/10)
	millis := strconv.FormatInt(max(wait.Milliseconds(), 1), 10) // 0 would be for ever
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
