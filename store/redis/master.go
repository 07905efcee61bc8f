package redis

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

const (
	seekEvery  = time.Second     // at most so often another master is looked for
	checkEvery = 5 * time.Second // in which Redis is asked whether it writes, while there are calls
)

// A link is a client of rueidis with its connections. A single Redis that does not write any more, since another one has become the master in its
// place, keeps its connections, though its name or address, as a provider gives one, stands for the new master by then: a new link takes
// the place of the old one. In a cluster nodes say who has a key, and there is one link for ever.
type link struct {
	client rueidis.Client
	lasts  context.Context // ends subscriptions when another link has taken its place
	end    context.CancelFunc
	calls  sync.RWMutex // each call holds it for reading
}

func newLink(client rueidis.Client) *link {
	l := &link{client: client}
	l.lasts, l.end = context.WithCancel(context.Background())
	return l
}

// use returns the link for a call, which lets go of it by calls.RUnlock.
func (s *redisStore) use() *link {
	for {
		if l := s.link.Load(); l.calls.TryRLock() { // else it is retired, and another one is in its place
			return l
		}
	}
}

// retire ends a link that another one has taken the place of: its subscriptions at once, its connections when the last call is over.
func (l *link) retire() {
	l.end()
	l.calls.Lock()
	l.client.Close()
}

// isNoMaster reports whether a reply says that nothing was done, since Redis is no master or may have been one: it is a replica, or gets what a
// master has, or has lost its replicas, as one does that is cut off. Older ones say it of a script's command somewhere in the middle.
func isNoMaster(err error) bool {
	reply, ok := rueidis.IsRedisErr(err)
	if !ok {
		return false
	}
	text := reply.Error()
	return strings.HasPrefix(text, "LOADING ") || strings.HasPrefix(text, "MASTERDOWN ") || strings.Contains(text, "READONLY ") || strings.Contains(text, "NOREPLICAS ")
}

// tryToWrite asks Redis to remove what is never there, which one that does not write refuses. It does so several times: rueidis takes one of two connections
// by chance, and they may have been made when the name stood for different ones.
func (s *redisStore) tryToWrite(ctx context.Context, client rueidis.Client) error {
	ctx = context.WithValue(ctx, visiting{}, true)
	for range 5 {
		if err := client.Do(ctx, client.B().Arbitrary("DEL").Keys(s.valueKey("")).Build()).Error(); err != nil {
			return err
		}
	}
	return nil
}

// isDue reports whether it is time again for something, and notes that it is done now.
func (s *redisStore) isDue(every time.Duration, at *atomic.Int64) bool {
	now, last := time.Since(s.began), at.Load()
	return now.Nanoseconds() >= last && at.CompareAndSwap(last, (now+every).Nanoseconds())
}

// check asks whether Redis writes, now and then, for those who only read or publish: a replica does both for ever, and publishes to nobody
// who listens to the master.
func (s *redisStore) check() {
	if s.dial == nil || !s.isDue(checkEvery, &s.checkAt) {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(s.closing, dialTimeout)
		defer cancel()
		l := s.use()
		defer l.calls.RUnlock()
		if isNoMaster(s.tryToWrite(ctx, l.client)) {
			s.seek()
		}
	}()
}

// seek looks for the master in the background, where Redis has said that it is none.
func (s *redisStore) seek() {
	if s.dial != nil && s.isDue(seekEvery, &s.seekAt) {
		go s.relink()
	}
}

// relink connects anew, and stays with the link there is if nobody answers who writes.
func (s *redisStore) relink() {
	if !s.linking.TryLock() {
		return
	}
	defer s.linking.Unlock()
	client, err := s.dial()
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(s.closing, dialTimeout)
	defer cancel()
	if err := s.tryToWrite(ctx, client); err != nil {
		if _, answered := rueidis.IsRedisErr(err); !answered || isNoMaster(err) {
			client.Close()
			return
		}
	}
	old := s.link.Swap(newLink(client))
	if s.closing.Err() != nil { // Close may not have seen the new one
		client.Close()
	}
	go old.retire()
}
