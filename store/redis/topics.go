package redis

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/dunlinhttp/dunlin/store"
)

// lineLength is how many messages wait for a slow receiver; further ones are lost.
const lineLength = 64

// resubscribe is how long a subscription waits before it is made again, when its connection was lost.
const resubscribe = 100 * time.Millisecond

// Subscribe is store.Store.Subscribe. While Redis is away there is none, see store.Guarded.Subscribe. A subscription that stands is made again
// when its connection was lost: messages that are published meanwhile are not received, and nobody counts them.
func (s *redisStore) Subscribe(ctx context.Context, topic string, receive func(store.Message)) error {
	if err := s.begin(ctx, topic); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.closing, cancel)
	line := make(chan store.Message, lineLength)
	stands := make(chan struct{})
	var once sync.Once
	failed := make(chan error, 1)
	go func() {
		defer stop()
		defer cancel()
		s.listen(ctx, topic, line, func() { once.Do(func() { close(stands) }) }, failed)
	}()
	select {
	case <-stands:
	case err := <-failed:
		cancel()
		return errorOf(err)
	case <-ctx.Done():
		cancel()
		return ctx.Err()
	}
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case m := <-line:
				if ctx.Err() != nil {
					return
				}
				receive(m)
			}
		}
	}()
	return nil
}

// listen puts messages in the line until ctx ends. The first failure is reported, and ends it if the subscription
// never stood.
func (s *redisStore) listen(ctx context.Context, topic string, line chan<- store.Message, stands func(), failed chan<- error) {
	var lost uint64 // since the last that found room; of the connection's goroutine
	var stood atomic.Bool
	hooked := rueidis.WithOnSubscriptionHook(ctx, func(about rueidis.PubSubSubscription) {
		if about.Kind == "subscribe" {
			stood.Store(true)
			stands()
		}
	})
	for {
		err := s.client.Receive(hooked, s.client.B().Subscribe().Channel(s.channel(topic)).Build(), func(m rueidis.PubSubMessage) {
			select {
			case line <- store.Message{Body: []byte(m.Message), Lost: lost}:
				lost = 0
			default:
				lost++
			}
		})
		if !stood.Load() {
			failed <- err
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(resubscribe):
		}
	}
}
