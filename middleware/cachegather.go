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

// A streamed response (a stream, a file, a long response of a Proxy's upstream) is copied while it is
// sent to its client:
//
//	action ─▶ its response ─▶ middleware before the cache ─▶ head ─▶ pieces ───────────▶ client
//	                                                          Begin   Piece … End(whole)
//	                                                          makes   copies  stores the entry
//	                                                          the     the     and the body
//	                                                          entry   body
//
// The copy counts in MaxBytes from its first byte. It grows at the pace of the client. So other
// requests wait for the copy only for a short time, and a stalled copy is discarded before a stored
// response is evicted.

const (
	// longestCopy is the time for which other requests wait for a copy after its action has returned. Then one of them
	// runs the action, too, because the client may be slow.
	longestCopy = 500 * time.Millisecond
	// When room is needed, two kinds of copies are discarded first: copies without progress for stalledAfter, and copies
	// that have taken longer than slowAfter.
	stalledAfter, slowAfter = time.Second, 10 * time.Second
	// firstCopy is the initial capacity of a copy of unknown size, in bytes.
	firstCopy = 16 << 10
)

// A cacheGather is a copy in progress, and the tap that makes it.
type cacheGather struct {
	cache  *ResponseCache
	r      *dunlin.Request
	key    cacheKey
	req    httpcache.Request
	stale  *cacheEntry
	flight *cacheFlight // may be nil
	epoch  uint64
	timer  *time.Timer  // ends the flight
	size   int64        // of the body, in bytes; -1 if unknown
	e      *cacheEntry  // the future entry, without the body; nil before Begin
	n      int          // bytes copied
	moved  atomic.Int64 // time of the last progress

	refused bool // there was no room, or the response was too long

	mu   sync.Mutex
	body []byte
	room int  // capacity of body, as reserved in the cache; only Piece changes it
	gone bool // the reserved memory has been released
}

// cacheGathers has the copies of a cache that hold memory.
type cacheGathers struct {
	bytes atomic.Int64
	mu    sync.Mutex
	set   map[*cacheGather]struct{}
}

// gather adds a tap (exchange.Tap) to a streamed response. The tap copies the body while it is sent. The
// flight then ends with the copy. gather reports false if the response cannot be copied.
func (k *ResponseCache) gather(r *dunlin.Request, key *cacheKey, req httpcache.Request, stale *cacheEntry, f *cacheFlight, resp dunlin.Response, epoch uint64) (dunlin.Response, bool) {
	g := &cacheGather{cache: k, r: r, key: *key, req: req, stale: stale, flight: f, epoch: epoch}
	tapped, ok := inside.Tap(resp, g)
	if !ok {
		return resp, false
	}
	if f != nil && !f.own {
		// The timer also ends the flight if the response is never sent.
		g.timer = time.AfterFunc(longestCopy, func() { k.finish(&g.key, f) })
	}
	return tapped, true
}

// Begin decides whether to copy the response.
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

// lasting reports whether the next response is likely to have the same outcome.
func (g *cacheGather) lasting(status int) bool {
	return status < http.StatusInternalServerError && g.r.Context().Err() == nil
}

// Piece appends p to the copy. It reports false if there is no room or the copy was discarded.
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

// grow makes room for n more bytes.
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
		room = most // the size is known, and repeated growth makes garbage
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

// giveUp releases the memory of the copy. It may be called repeatedly.
func (g *cacheGather) giveUp() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.gone {
		g.gone, g.body = true, nil
		g.cache.gathered(-int64(g.room))
	}
}

// End stores the response if whole is true, and ends the flight.
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
	g.giveUp() // store reserves memory for the entry
	switch {
	case g.e == nil: // Begin was not called
	case whole && (g.size >= 0 || g.r.Context().Err() == nil): // if the size is unknown and the client has disconnected, the action may have stopped early
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

// roomToGather reserves n bytes for a copy, and discards stalled copies if necessary. It returns false if
// there is no room. All copies together may use a quarter of MaxBytes, or MaxEntry if that is more.
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

// gathered releases memory that roomToGather has reserved: it adds n, which is zero or negative, to the
// number of reserved bytes.
func (k *ResponseCache) gathered(n int64) {
	k.gathers.bytes.Add(n)
	k.giveBack(-n)
}

// giveUpIdle discards the copy that has made no progress for the longest time, if this time is at
// least atLeast. For a copy that has taken longer than slowAfter, the time since its Begin counts instead.
// giveUpIdle reports whether it discarded a copy.
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
