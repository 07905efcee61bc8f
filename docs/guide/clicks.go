package main

import (
	"context"
	"sync"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/typed"
)

// countClicks counts clicks and notifies the watchers. When ctx ends, it processes the rest of the queue.
func (s *service) countClicks(ctx context.Context) {
	for {
		select {
		case code := <-s.clicked:
			s.countClick(code)
		case <-ctx.Done():
			for {
				select {
				case code := <-s.clicked:
					s.countClick(code)
				default:
					return
				}
			}
		}
	}
}

func (s *service) countClick(code string) {
	if l, ok := s.links.click(code); ok {
		s.watchers.tell(l)
	}
}

// watch sends the user's links as they are clicked.
func (s *service) watch(r *dunlin.Request, _ struct{}) (typed.EventsOf[Link], error) {
	user := s.user(r)
	return func(e *typed.Emitter[Link]) error {
		clicked, leave := s.watchers.join(user)
		defer leave()
		for {
			select {
			case l := <-clicked:
				if err := e.Emit(l); err != nil {
					return err
				}
			case <-e.Done(): // the client has gone, or the server is about to end
				return nil
			}
		}
	}, nil
}

// watchers are the streams of watching users, with the owner of the links they get.
type watchers struct {
	mu  sync.Mutex
	all map[chan Link]string
}

func (w *watchers) join(user string) (clicked <-chan Link, leave func()) {
	c := make(chan Link, 64)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = map[chan Link]string{}
	}
	w.all[c] = user
	return c, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.all, c)
	}
}

func (w *watchers) tell(l Link) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c, user := range w.all {
		if user == l.owner {
			select {
			case c <- l:
			default: // a slow watcher misses clicks
			}
		}
	}
}
