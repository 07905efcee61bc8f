package middleware

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/httpcache"
	"github.com/dunlinhttp/dunlin/internal/view"
)

// An answer that is made when it is sent — a stream, a file, what a server behind a Proxy answers at length — passes on to its client as
// it comes, and is copied on the way:
//
//	action ─▶ its response ─▶ middleware outside of the cache ─▶ head ─▶ pieces ──────────▶ client
//	                                                             Begin   Piece … End(whole)
//	                                                             entry   its body ─▶ store
//
// The copy counts as what is kept from its first byte on. It has the pace of its client, so others need not wait for it for long, and
// what does not get on goes before anything that is kept.

const (
	// longestCopy is for how long others wait for an answer that is being copied, once its action has returned. Then one of them runs
	// the action, too, for the rest: the client may be slow.
	longestCopy = 500 * time.Millisecond
	// stalledAfter is for how long nothing has come of what goes first when room is needed. What has come for slowAfter counts as stalled.
	stalledAfter, slowAfter = time.Second, 10 * time.Second
	// firstCopy is how much room the copy of an answer of unknown size has at first.
	firstCopy = 16 << 10
)

// A cacheGather is such an answer, and the tap that copies it.
type cacheGather struct {
	cache  *ResponseCache
	r      *dunlin.Request
	key    cacheKey
	req    httpcache.Request
	stale  *cacheEntry
	flight *cacheFlight // or nil
	epoch  uint64
	timer  *time.Timer // ends the flight
	size   int64       // of the body, -1 if that is not known
	e      *cacheEntry // what it is to be, without the body; nil before Begin
	n      int         // bytes that were copied
	moved  atomic.Int64

	refused bool // there was no room, or too much came

	mu   sync.Mutex
	body []byte
	room int  // its capacity, which is accounted for; changes on the goroutine of Piece
	gone bool // that has been given back
}

// cacheGathers are those of a cache that hold something.
type cacheGathers struct {
	bytes atomic.Int64
	mu    sync.Mutex
	set   map[*cacheGather]struct{}
}

// gather has an answer that is made when it is sent kept then, if it may be, and reports false for one that is not. The flight ends with it.
func (k *ResponseCache) gather(r *dunlin.Request, key *cacheKey, req httpcache.Request, stale *cacheEntry, f *cacheFlight, resp dunlin.Response, epoch uint64) (dunlin.Response, bool) {
	g := &cacheGather{cache: k, r: r, key: *key, req: req, stale: stale, flight: f, epoch: epoch}
	tapped, ok := inside.Tap(resp, g)
	if !ok {
		return resp, false
	}
	if f != nil && !f.own {
		// Also if it is never sent.
		g.timer = time.AfterFunc(longestCopy, func() { k.finish(&g.key, f) })
	}
	return tapped, true
}

// Begin decides whether the answer is to be kept.
func (g *cacheGather) Begin(a exchange.Answer, size int64) (exchange.Answer, bool) {
	k, complete := g.cache, a.Kind() == exchange.Complete
	d, age, trailers := newDraft(a.Status(), nil, a.Headers), "", false
	for name, value := range a.Headers {
		switch {
		case strings.EqualFold(name, "Age") && age == "":
			age = value
		case strings.EqualFold(name, "Trailer"):
			trailers = true
		}
	}
	if complete {
		d.body = view.Bytes(a.Body)
	}
	failed := a.Failed() || a.Own() != nil && a.Own().Err != nil
	if !failed && !trailers && size <= int64(k.config.MaxEntry) {
		g.e = k.newEntry(g.r, &g.key, g.req, d, age)
	}
	if g.e == nil && g.stale != nil && k.supersedes(d) {
		k.discard(g.stale)
	}
	status := cacheStatusMiss
	if g.e == nil || complete {
		if !k.store(&g.key, g.req, g.e, g.epoch, g.lasting(d.status)) {
			g.land()
			return a, false
		}
		status = cacheStatusStored
		g.land()
	}
	if said, err := a.Push(exchange.Field{Name: "Cache-Status", Value: status, Replace: true}); err == nil {
		a = said
	}
	g.size = size
	return a, !complete
}

// lasting reports whether the next answer will be like this one.
func (g *cacheGather) lasting(status int) bool {
	return status < http.StatusInternalServerError && g.r.Context().Err() == nil
}

// Piece copies what comes. It is false if there is no room for it.
func (g *cacheGather) Piece(p []byte) bool {
	g.moved.Store(int64(g.cache.now()))
	if g.n+len(p) > g.room && !g.grow(len(p)) {
		g.refused = true
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refused = g.gone; g.gone {
		return false
	}
	g.body = append(g.body, p...)
	g.n += len(p)
	return true
}

// grow makes room for n bytes more.
func (g *cacheGather) grow(n int) bool {
	k, most := g.cache, g.cache.config.MaxEntry
	if g.size >= 0 {
		most = int(g.size)
	}
	if n > most-g.n {
		return false
	}
	room := min(max(g.n+n, 2*g.room, firstCopy), most)
	if g.size >= 0 {
		room = most // at once: what is given up on the way is much for the collector, what is refused nothing
	}
	if !k.roomToGather(int64(room - g.room)) {
		return false
	}
	body := make([]byte, 0, room)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gone {
		k.gathered(int64(g.room - room))
		return false
	}
	if g.room == 0 {
		k.gathers.list(g)
	}
	g.body, g.room = append(body, g.body...), room
	return true
}

// giveUp gives its memory back, unless that has been done.
func (g *cacheGather) giveUp() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.gone {
		g.gone, g.body = true, nil
		g.cache.gathered(-int64(g.room))
	}
}

// End keeps the answer if it is whole, and ends its flight.
func (g *cacheGather) End(whole bool) {
	k := g.cache
	defer g.land()
	k.gathers.unlist(g)
	g.mu.Lock()
	body, gone := g.body, g.gone
	g.mu.Unlock()
	if whole = whole && !gone; whole && cap(body)-len(body) > len(body)/8 {
		body = slices.Clone(body)
	}
	g.giveUp() // what is stored counts anew
	switch {
	case g.e == nil: // it has not begun
	case whole && (g.size >= 0 || g.r.Context().Err() == nil): // else who makes it may have left off because its client has gone
		g.e.body = body
		g.e.size += int64(cap(body))
		k.store(&g.e.key, g.req, g.e, g.epoch, true)
	case g.refused:
		k.store(&g.key, g.req, nil, g.epoch, true)
	}
}

// land ends the flight.
func (g *cacheGather) land() {
	if g.timer != nil {
		g.timer.Stop()
	}
	g.cache.finish(&g.key, g.flight)
}

func (all *cacheGathers) list(g *cacheGather) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.set == nil {
		all.set = make(map[*cacheGather]struct{})
	}
	all.set[g] = struct{}{}
}

func (all *cacheGathers) unlist(g *cacheGather) {
	all.mu.Lock()
	defer all.mu.Unlock()
	delete(all.set, g)
}

// roomToGather takes n bytes for what is being copied, which may have a quarter of the cache.
func (k *ResponseCache) roomToGather(n int64) bool {
	for k.gathers.bytes.Add(n) > max(k.config.MaxBytes/4, int64(k.config.MaxEntry)) {
		k.gathers.bytes.Add(-n)
		if !k.giveUpIdle(stalledAfter) {
			return false
		}
	}
	if !k.makeRoom(n) {
		k.gathers.bytes.Add(-n)
		return false
	}
	return true
}

// gathered gives -n bytes of roomToGather back.
func (k *ResponseCache) gathered(n int64) {
	k.gathers.bytes.Add(n)
	k.giveBack(-n)
}

// giveUpIdle gives up the copy of which nothing has come for the longest time, if that is long enough, and reports whether there was one.
func (k *ResponseCache) giveUpIdle(atLeast time.Duration) bool {
	if k.gathers.bytes.Load() == 0 {
		return false
	}
	var idlest *cacheGather
	now := k.now()
	until := int64(now - atLeast)
	k.gathers.mu.Lock()
	for g := range k.gathers.set {
		moved := g.moved.Load()
		if now-g.e.made > slowAfter {
			moved = int64(g.e.made)
		}
		if moved <= until {
			idlest, until = g, moved
		}
	}
	delete(k.gathers.set, idlest)
	k.gathers.mu.Unlock()
	if idlest == nil {
		return false
	}
	idlest.giveUp()
	return true
}
