package redis

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/dunlinhttp/dunlin/store"
)

// lineLength is how many messages wait for a slow receiver; further ones are lost.
const lineLength = 64

// resubscribe is how long a subscription waits before it is made again, when its connection was lost.
const resubscribe = 100 * time.Millisecond

// longestEnd is for how long Redis is waited for to end a subscription. A connection on which nothing comes is given up before.
const longestEnd = 2 * replyTimeout

// audiences are those of all topics that are listened to.
type audiences struct {
	mu sync.Mutex
	by map[string]*audience
}

// An audience is all who listen to a topic, by one subscription of one connection. rueidis would take several for one topic, but while one more is
// made on a connection, 16 messages of the topic bring the connection to a halt; and it leaves connections subscribed for ever to whatever
// was ever listened to, though nobody knows then when they may be unsubscribed.
type audience struct {
	cancel context.CancelFunc // ends it
	over   chan struct{}      // closed when it has ended: Redis sends no more, and the topic may be subscribed to anew
	err    error              // why it never stood; to be read when it is over

	mu        sync.Mutex
	listeners map[*listener]bool // nil: it is about to end
	stands    chan struct{}      // closed while the subscription stands
	stood     bool
}

// A listener has the messages that wait for a receiver.
type listener struct {
	line chan store.Message
	lost uint64 // since the last that found room; audience.mu guards it
}

// Subscribe is store.Store.Subscribe. While Redis is away there is none, see store.Guarded.Subscribe. A subscription that stands is made again
// when its connection was lost: messages that are published meanwhile are not received, and nobody counts them.
func (s *redisStore) Subscribe(ctx context.Context, topic string, receive func(store.Message)) error {
	if err := s.begin(ctx, topic); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.closing, cancel)
	l := &listener{line: make(chan store.Message, lineLength)}
	a, err := s.join(ctx, topic, l)
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
			select {
			case <-ctx.Done():
				return
			case m := <-l.line:
				if ctx.Err() != nil {
					return
				}
				receive(m)
			}
		}
	}()
	return nil
}

// join makes a listener one of the topic's audience, and waits until its subscription stands.
func (s *redisStore) join(ctx context.Context, topic string, l *listener) (*audience, error) {
	for {
		a, first, joined := s.audience(topic, l)
		if !joined { // what Redis is ending is over first
			select {
			case <-a.over:
				continue
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		a.mu.Lock()
		stands := a.stands
		a.mu.Unlock()
		var err error
		select {
		case <-stands:
			if !first { // it may have been lost, and nobody know yet
				err = s.Probe(ctx, topic, false)
			}
		case <-a.over:
			err = cmp.Or(a.err, store.ErrClosed)
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err != nil {
			s.leave(a, l)
			return nil, err
		}
		return a, nil
	}
}

// audience returns that of a topic, and whether the listener is its first, and one of it at all: one that is about to end takes nobody in.
func (s *redisStore) audience(topic string, l *listener) (a *audience, first, joined bool) {
	s.audiences.mu.Lock()
	defer s.audiences.mu.Unlock()
	a = s.audiences.by[topic]
	if a == nil {
		ctx, cancel := context.WithCancel(s.closing)
		a = &audience{cancel: cancel, over: make(chan struct{}), listeners: map[*listener]bool{l: true}, stands: make(chan struct{})}
		if s.audiences.by == nil {
			s.audiences.by = map[string]*audience{}
		}
		s.audiences.by[topic] = a
		go s.listen(ctx, topic, a)
		return a, true, true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.listeners == nil {
		return a, false, false
	}
	a.listeners[l] = true
	return a, false, true
}

// leave takes a listener out. With the last one the audience ends.
func (s *redisStore) leave(a *audience, l *listener) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.listeners, l)
	if len(a.listeners) == 0 {
		a.listeners = nil
		a.cancel()
	}
}

// listen hands out messages until ctx ends. A failure ends it, too, if the subscription never stood.
func (s *redisStore) listen(ctx context.Context, topic string, a *audience) {
	var on rueidis.CommandClient // the connection that is subscribed when ctx ends, nil for none
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
		err := l.client.Receive(lasting, l.client.B().Subscribe().Channel(s.channel(topic)).Build(), func(m rueidis.PubSubMessage) { a.deliver([]byte(m.Message)) })
		stop()
		cancel()
		if l.lasts.Err() != nil { // it goes on by the link that has taken the place
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
		_ = on.Do(ctx, on.B().Unsubscribe().Channel(s.channel(topic)).Build()).Error() // that fails with its connection
		cancel()
	}
	s.audiences.mu.Lock()
	delete(s.audiences.by, topic)
	s.audiences.mu.Unlock()
	a.cancel()
	close(a.over)
}

// begun notes that the subscription stands.
func (a *audience) begun() {
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case <-a.stands:
	default:
		close(a.stands)
	}
	a.stood = true
}

// lost notes that the subscription does not stand any more, and reports whether it never did: then the audience is about to end with the error.
func (a *audience) lost(err error) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.stood && err != nil {
		a.err, a.listeners = err, nil
		return true
	}
	select {
	case <-a.stands:
		a.stands = make(chan struct{})
	default:
	}
	return false
}

// deliver puts a message in the line of each listener.
func (a *audience) deliver(body []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for l := range a.listeners {
		select {
		case l.line <- store.Message{Body: body, Lost: l.lost}:
			l.lost = 0
		default:
			l.lost++
		}
	}
}
