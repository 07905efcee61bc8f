package store

import (
	"context"
	"slices"
	"sync"

	"github.com/dunlinhttp/dunlin/internal/backlog"
)

// topics has a log of messages for each topic of a store in memory that has subscribers.
type topics struct {
	mu     sync.Mutex
	by     map[string]*backlog.Log[[]byte]
	ends   context.CancelFunc // ends all subscriptions
	all    context.Context
	closed bool
}

func (t *topics) subscribe(ctx context.Context, topic string, receive func(Message)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return ErrClosed
	}
	if t.all == nil {
		t.all, t.ends = context.WithCancel(context.Background())
		t.by = map[string]*backlog.Log[[]byte]{}
	}
	l := t.by[topic]
	if l == nil {
		l = new(backlog.Log[[]byte])
		t.by[topic] = l
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(t.all, cancel)
	r := l.Join()
	go func() {
		defer cancel()
		defer stop()
		defer t.leave(topic, r)
		for {
			body, lost, ok := r.Next(ctx)
			if !ok || t.all.Err() != nil {
				return
			}
			receive(Message{body, lost})
		}
	}()
	return nil
}

// leave ends a subscription. The log of a topic ends with its last subscription.
func (t *topics) leave(topic string, r *backlog.Receiver[[]byte]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.Leave() {
		delete(t.by, topic)
	}
}

func (t *topics) publish(topic string, message []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.by[topic]; l != nil {
		l.Add(slices.Clone(message)) // one copy for all subscribers
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
