package redis

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/dunlinhttp/dunlin/internal/backlog"
	"github.com/dunlinhttp/dunlin/store"
)

// resubscribe is the pause before a subscription is renewed after the loss of its connection.
const resubscribe = 100 * time.Millisecond

// longestEnd is the maximum time to wait for Redis to end a subscription. A silent connection is closed earlier.
const longestEnd = 2 * replyTimeout

// audiences holds the audiences of all topics that have listeners.
type audiences struct {
	mu sync.Mutex
	by map[string]*audience
}

// An audience is the set of all listeners of a topic. They share one subscription on one connection. rueidis supports several
// subscriptions to one topic, but while a further one is being made on a connection, 16 messages that arrive for the topic are
// enough to block the connection. rueidis also keeps connections subscribed to every topic that ever had a listener, because it does
// not know when to unsubscribe.
type audience struct {
	cancel context.CancelFunc // ends the subscription
	over   chan struct{}      // closed after the end of the subscription: Redis sends no more messages, and the topic may be subscribed to again
	err    error              // the reason why the subscription never began; may be read after over is closed

	mu     sync.Mutex
	log    *backlog.Log[[]byte]
	ending bool          // the audience has no listeners, and accepts no new ones
	active chan struct{} // closed while the subscription is active
	stood  bool          // the subscription has been active at least once
}

// Subscribe implements store.Store. While Redis is unavailable it fails, see store.Guarded.Subscribe. An active subscription is
// renewed after the loss of its connection. Messages that are published in the meantime are lost and not counted.
func (s *redisStore) Subscribe(ctx context.Context, topic string, receive func(store.Message)) error {
	if err := s.begin(ctx, topic); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.closing, cancel)
	a, l, err := s.join(ctx, topic)
	if err != nil {
		stop()
		cancel()
		return s.errorOf(err)
	}
	go func() {
		defer stop()
		defer cancel()
		defer s.leave(a, l)
		for {
			body, lost, ok := l.Next(ctx)
			if !ok {
				return
			}
			receive(store.Message{Body: body, Lost: lost})
		}
	}()
	return nil
}

// A listener receives the messages of a topic.
type listener = backlog.Receiver[[]byte]

// join adds a listener to the audience of a topic, and waits until its subscription is active.
func (s *redisStore) join(ctx context.Context, topic string) (*audience, *listener, error) {
	for {
		a, l, first := s.audience(topic)
		if l == nil { // wait until Redis has ended the old subscription
			select {
			case <-a.over:
				continue
			case <-ctx.Done():
				return nil, nil, ctx.Err()
			}
		}
		a.mu.Lock()
		active := a.active
		a.mu.Unlock()
		var err error
		select {
		case <-active:
			if !first { // the subscription may be lost without notice
				err = s.Probe(ctx, topic, false)
			}
		case <-a.over:
			err = cmp.Or(a.err, store.ErrClosed)
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err != nil {
			s.leave(a, l)
			return nil, nil, err
		}
		return a, l, nil
	}
}

// audience returns the audience of a topic, with a new listener. first reports whether the listener is the first one. An
// audience that is ending accepts no new listeners: then l is nil.
func (s *redisStore) audience(topic string) (a *audience, l *listener, first bool) {
	s.audiences.mu.Lock()
	defer s.audiences.mu.Unlock()
	a = s.audiences.by[topic]
	if a == nil {
		ctx, cancel := context.WithCancel(s.closing)
		a = &audience{cancel: cancel, over: make(chan struct{}), log: new(backlog.Log[[]byte]), active: make(chan struct{})}
		if s.audiences.by == nil {
			s.audiences.by = map[string]*audience{}
		}
		s.audiences.by[topic] = a
		l = a.log.Join()
		go s.listen(ctx, topic, a)
		return a, l, true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ending {
		return a, nil, false
	}
	return a, a.log.Join(), false
}

// leave removes a listener. The audience ends with its last listener.
func (s *redisStore) leave(a *audience, l *listener) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if l.Leave() {
		a.ending = true
		a.cancel()
	}
}

// listen adds the messages of the topic to the log of a until ctx ends. If the subscription was never active, listen also returns
// after a failure.
func (s *redisStore) listen(ctx context.Context, topic string, a *audience) {
	var on rueidis.CommandClient // the subscribed connection, set only if Receive returned after the end of ctx
	hooked := rueidis.WithOnSubscriptionHook(context.WithValue(ctx, subscribing{}, true), func(about rueidis.PubSubSubscription) {
		if about.Kind == "subscribe" {
			a.begun()
		}
	})
	hooked = rueidis.WithOnReceiveReturnHook(hooked, func(err error, c rueidis.CommandClient) error {
		if ctx.Err() != nil {
			on = c
		}
		return err
	})
	for ctx.Err() == nil {
		l := s.link.Load()
		lasting, cancel := context.WithCancel(hooked)
		stop := context.AfterFunc(l.lasts, cancel)
		err := l.client.Receive(lasting, l.client.B().Subscribe().Channel(s.channel(topic)).Build(), func(m rueidis.PubSubMessage) { a.log.Add([]byte(m.Message)) })
		stop()
		cancel()
		if l.lasts.Err() != nil { // the subscription continues on the link that has replaced this one
			a.lost(nil)
			continue
		}
		if ctx.Err() == nil && a.lost(err) {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(resubscribe):
		}
	}
	if on != nil && s.closing.Err() == nil {
		ctx, cancel := context.WithTimeout(context.Background(), longestEnd)
		_ = on.Do(ctx, on.B().Unsubscribe().Channel(s.channel(topic)).Build()).Error() // fails if the connection is lost
		cancel()
	}
	s.audiences.mu.Lock()
	delete(s.audiences.by, topic)
	s.audiences.mu.Unlock()
	a.cancel()
	close(a.over)
}

// begun records that the subscription is active.
func (a *audience) begun() {
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case <-a.active:
	default:
		close(a.active)
	}
	a.stood = true
}

// lost records that the subscription is no longer active. If it was never active and err is not nil, lost records err as the
// reason, marks the audience as ending and returns true.
func (a *audience) lost(err error) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.stood && err != nil {
		a.err, a.ending = err, true
		return true
	}
	select {
	case <-a.active:
		a.active = make(chan struct{})
	default:
	}
	return false
}
