package store

import (
	"context"
	"slices"
	"sync"
)

// topics holds the subscriptions of a store in memory.
type topics struct {
	mu     sync.Mutex
	by     map[string][]*subscription
	ends   context.CancelFunc // ends all subscriptions
	all    context.Context
	closed bool
}

// A subscription has a bounded queue of messages and a goroutine that delivers them.
type subscription struct {
	line chan Message
	lost uint64 // messages dropped since the last queued one; guarded by topics.mu
}

// queueLength is the length of a subscriber's queue. Further messages are dropped.
const queueLength = 64

func (t *topics) subscribe(ctx context.Context, topic string, receive func(Message)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return ErrClosed
	}
	if t.all == nil {
		t.all, t.ends = context.WithCancel(context.Background())
		t.by = map[string][]*subscription{}
	}
	s := &subscription{line: make(chan Message, queueLength)}
	t.by[topic] = append(t.by[topic], s)
	go t.serve(ctx, t.all, topic, s, receive)
	return nil
}

func (t *topics) serve(ctx, all context.Context, topic string, s *subscription, receive func(Message)) {
	defer t.leave(topic, s)
	for {
		select {
		case <-ctx.Done():
			return
		case <-all.Done():
			return
		case m := <-s.line:
			if ctx.Err() != nil || all.Err() != nil {
				return
			}
			receive(m)
		}
	}
}

func (t *topics) leave(topic string, s *subscription) {
	t.mu.Lock()
	defer t.mu.Unlock()
	left := slices.DeleteFunc(t.by[topic], func(other *subscription) bool { return other == s })
	if len(left) == 0 {
		delete(t.by, topic)
		return
	}
	t.by[topic] = left
}

func (t *topics) publish(topic string, message []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	subscribers := t.by[topic]
	if len(subscribers) == 0 {
		return
	}
	own := slices.Clone(message) // one copy for all subscribers
	for _, s := range subscribers {
		select {
		case s.line <- Message{own, s.lost}:
			s.lost = 0
		default:
			s.lost++
		}
	}
}

func (t *topics) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.ends != nil {
		t.ends()
	}
}
