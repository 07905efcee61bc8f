package middleware

import (
	"errors"
	"hash/maphash"
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/gcra"
	"github.com/dunlinhttp/dunlin/store"
)

// A keyQuota limits the bytes that the idempotency keys of one holder, a user or an address, take in
// the store. It is replenished evenly within the TTL, after which the store has removed the keys. So a
// holder has at most twice the quota in the store. Each process counts only what it has stored itself.
type keyQuota struct {
	perByte int64 // nanoseconds to replenish one byte
	most    int64 // nanoseconds to replenish the whole quota
	began   time.Time
	seed    maphash.Seed
	all     *keyQuota // the quota of all holders together, for the holder 0; nil if the store limits them

	mu    sync.Mutex // held from table.Peek to table.Record
	table *gcra.Table
}

const (
	defaultUserBytes = 64 << 20
	maxHolders       = 1 << 16 // maximum number of remembered holders: 4 MiB

	// claimCost is the size of a key without a response in the store, in bytes: the key, the record and
	// the overhead of the store.
	claimCost = 256
)

func newKeyQuota(bytes int64, ttl time.Duration) *keyQuota {
	q := &keyQuota{perByte: max(int64(ttl)/bytes, 1), began: time.Now(), seed: maphash.MakeSeed()}
	q.most = q.perByte * bytes
	q.table = gcra.NewTable(gcra.Rate{Interval: 1, Tolerance: q.most}, maxHolders)
	return q
}

// holderOf returns the holder of a request's keys: its user or, without a user, its address (for
// IPv6 the /64).
func (q *keyQuota) holderOf(r *dunlin.Request, user string) uint64 {
	if user != "" {
		return maphash.String(q.seed, "user "+user)
	}
	addr := r.Remote().Addr().Unmap()
	bits := 64
	if addr.Is4() {
		bits = 32
	}
	prefix, _ := addr.Prefix(bits) // the zero prefix for a unix socket
	return maphash.Comparable[netip.Prefix](q.seed, prefix)
}

// reserve takes n bytes of a holder's quota and of the quota of all holders. If a quota has too few
// bytes, reserve returns this quota and the time until it has n bytes.
func (q *keyQuota) reserve(holder uint64, n int64) (wait time.Duration, short *keyQuota) {
	if q.all != nil {
		if wait, short := q.all.reserve(0, n); short != nil {
			return wait, short
		}
	}
	wait, ok := q.reserveOwn(holder, n)
	if ok {
		return 0, nil
	}
	if q.all != nil {
		q.all.giveBack(0, n)
	}
	return wait, q
}

func (q *keyQuota) reserveOwn(holder uint64, n int64) (wait time.Duration, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := int64(time.Since(q.began)) + 1
	used := q.table.Peek(holder, now).Used
	if n > (q.most-used)/q.perByte {
		return time.Duration(max(n*q.perByte-(q.most-used), 1)), false
	}
	q.table.Record(holder, now, used+n*q.perByte)
	return 0, true
}

// giveBack returns n bytes to the quotas.
func (q *keyQuota) giveBack(holder uint64, n int64) {
	if q.all != nil {
		q.all.giveBack(0, n)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	now := int64(time.Since(q.began)) + 1
	q.table.Record(holder, now, max(q.table.Peek(holder, now).Used-n*q.perByte, 0))
}

// overQuota answers a request if the keys of its user, or all keys, have used their quota. For a known
// key it returns the stored response.
func (k *claim) overQuota(r *dunlin.Request, wait time.Duration, short *keyQuota) dunlin.Response {
	item, err := k.config.Store.Get(r.Context(), k.key)
	switch {
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return notKept(err)
	case len(item.Value) >= recordHead && item.Value[0] != stateFree:
		return k.again(item.Value)
	}
	status, detail := http.StatusTooManyRequests, "the responses stored for this user's Idempotency-Keys have reached the quota"
	if short != k.quota {
		status, detail = http.StatusServiceUnavailable, "the responses stored for Idempotency-Keys have reached the quota"
	}
	return dunlin.Problem(&dunlin.ProblemDetails{Status: status, Detail: detail}).Header("Retry-After", strconv.FormatInt(int64(math.Ceil(wait.Seconds())), 10))
}

// saysUndone reports whether a status means that the request was refused before anything was done.
func saysUndone(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable,
		http.StatusLengthRequired, http.StatusPreconditionFailed, http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong,
		http.StatusUnsupportedMediaType, http.StatusRequestedRangeNotSatisfiable, http.StatusExpectationFailed, http.StatusMisdirectedRequest,
		http.StatusUnprocessableEntity, http.StatusUpgradeRequired, http.StatusPreconditionRequired, http.StatusTooManyRequests,
		http.StatusRequestHeaderFieldsTooLarge:
		return true
	}
	return false
}
