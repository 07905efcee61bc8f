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
	seekEvery  = time.Second     // minimum time between two searches for the master
	checkEvery = 5 * time.Second // time between two checks that Redis accepts writes, while there are calls
)

// A link is a client of rueidis with its connections. A single Redis that is no longer the master keeps its connections,
// although its name or its address, as a provider assigns one, already stands for the new master. A new link then replaces the
// old one. In a cluster the nodes report where a key is stored, so there is only one link.
type link struct {
	client rueidis.Client
	lasts  context.Context // ends subscriptions when another link has replaced this one
	end    context.CancelFunc
	calls  sync.RWMutex // each call holds the read lock
}

func newLink(client rueidis.Client) *link {
	l := &link{client: client}
	l.lasts, l.end = context.WithCancel(context.Background())
	return l
}

// use returns the link for a call, which releases it by calls.RUnlock.
func (s *redisStore) use() *link {
	for {
		if l := s.link.Load(); l.calls.TryRLock() { // else the link is retired, and another one has replaced it
			return l
		}
	}
}

// retire ends a link that has been replaced: its subscriptions at once, its connections after the last call.
func (l *link) retire() {
	l.end()
	l.calls.Lock()
	l.client.Close()
}

// isNoMaster reports whether a reply says that a command was not executed because Redis is not the master, or may no longer be:
// it is a replica, is being synchronized with a master, or has lost its replicas, as an isolated master does. Older versions
// have the message of a script's command in the middle of the reply.
func isNoMaster(err error) bool {
	reply, ok := rueidis.IsRedisErr(err)
	if !ok {
		return false
	}
	text := reply.Error()
	return strings.HasPrefix(text, "LOADING ") || strings.HasPrefix(text, "MASTERDOWN ") || strings.Contains(text, "READONLY ") || strings.Contains(text, "NOREPLICAS ")
}

// tryToWrite asks Redis to delete a key that never exists. A Redis that does not accept writes refuses this. tryToWrite does so
// several times: rueidis uses one of two connections at random, and the name may have stood for different servers when they
// were made.
func (s *redisStore) tryToWrite(ctx context.Context, client rueidis.Client) error {
	ctx = context.WithValue(ctx, visiting{}, true)
	for range 5 {
		if err := client.Do(ctx, client.B().Arbitrary("DEL").Keys(s.valueKey("")).Build()).Error(); err != nil {
			return err
		}
	}
	return nil
}

// isDue reports whether the time for an action has come, and schedules the next one.
func (s *redisStore) isDue(every time.Duration, at *atomic.Int64) bool {
	now, last := time.Since(s.began), at.Load()
	return now.Nanoseconds() >= last && at.CompareAndSwap(last, (now+every).Nanoseconds())
}

// check tests from time to time whether Redis accepts writes, for processes that only read or publish. A replica accepts both
// without an error, but its messages do not reach the subscribers at the master.
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

// seek looks for the master in the background, after Redis has reported that it is not the master.
func (s *redisStore) seek() {
	if s.dial != nil && s.isDue(seekEvery, &s.seekAt) {
		go s.relink()
	}
}

// relink opens a new link. It keeps the current link if no server that accepts writes answers.
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
	if s.closing.Err() != nil { // Close may have missed the new link
		client.Close()
	}
	go old.retire()
}
