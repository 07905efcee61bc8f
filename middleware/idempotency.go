package middleware

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/store"
)

// IdempotencyConfig has the settings of Idempotency. The zero value of a field stands for its default; Store must be given.
type IdempotencyConfig struct {
	// Store keeps the answers. Give one of another machine a [store.Guard].
	Store store.Store

	// Required answers 400 to requests without a key. By default they run as if there were no such thing.
	Required bool

	// Methods are those that the keys count for. Default: POST and PATCH.
	Methods []string

	// User returns the authenticated user of a request, whose key it is: two users may choose the same key. It is [User] behind BasicAuth and
	// KeyAuth, the user of a session, or the subject of a token, and never the token itself, which is renewed. A request with a key for
	// which it returns "" gets 403, unless Anonymous is set. It must be given unless Anonymous is set.
	User func(*dunlin.Request) string

	// Anonymous lets requests without a user have keys. They share them: a client that knows another's key and request gets its
	// answer, without the cookies. Default: such requests with a key get 403.
	Anonymous bool

	// TTL is for how long an answer is kept. Default: 24 hours.
	TTL time.Duration

	// Lease is for how long a request counts as running when its process has died. After that a repetition
	// runs again, though nobody knows what the first one did. Default: TTL.
	Lease time.Duration

	// MaxBytes bounds what is kept of an answer. What a standard handler answers is gathered up to this, and beyond 32 KB counts as
	// output of the request in the app's memory budget; without room there it is not gathered, and not kept. Default: 1 MiB.
	MaxBytes int

	// StoreBytes bounds the bytes that all keys hold in the store, so that other uses of it, such as sessions, keep their room. Beyond it new
	// keys get 503. In a [store.Memory] the store counts them; the default is a quarter of MemoryConfig.MaxBytes, and a store for keys alone may
	// give them all of it. In other stores, such as one in Redis, each process counts about what it has stored within TTL, as for UserBytes; the
	// default is no bound: set one where the store is shared with sessions, or give the keys a store of their own.
	StoreBytes int64

	// UserBytes bounds about what the keys of one user hold within TTL, by what this process has stored; of requests without a user it
	// bounds an address, of IPv6 a /64. Beyond it new keys get 429. Default: 64 MiB, but at most half of StoreBytes.
	UserBytes int64

	// Logger is told, once a second at most, what could not be kept. Default: slog.Default().
	Logger *slog.Logger
}

// Idempotency lets clients repeat a request whose answer they have not got, without it being carried out twice: a
// request whose Idempotency-Key was seen before gets the first answer again, with
// Idempotent-Replayed: true. It follows draft-ietf-httpapi-idempotency-key-header-07:
//
//	400  the key is missing where it is required, or malformed
//	403  no user is known
//	409  the first request with the key is running, or its answer could not be kept
//	422  the key was used for something else: another host, path, query, media type or body
//	429  the keys of the user hold as much as they may: IdempotencyConfig.UserBytes
//	503  all keys hold as much as they may: IdempotencyConfig.StoreBytes
//
// A key counts for a user, a method and a route. Its first request claims it in the store by one
// atomic step, on whatever machine; what comes meanwhile gets 409 with Retry-After. What the action answers is kept before it is
// sent, also an error. What says that nothing was done lets the key be used again: 400, 401, 403, 404, 405, 406, 411 to 417, 421, 422, 426,
// 428, 429 and 431; 503 with Retry-After and without a cause; and an action that gave up with context.Canceled since its client has left.
// An action that has done something answers otherwise, such as with 409.
//
// Nothing else runs twice: while the store does not answer, requests with a key get 503, and can be sent again when it does;
// and when an answer cannot be
// kept, or is a stream, repetitions get 409. What a [Proxy] or another standard handler answers is none where it says its length,
// up to MaxBytes. It reads bodies in whole, up to the route's limit.
//
// Put it behind authentication, and behind what must run for each repetition, such as Compress and CORS. Idempotency panics
// when a setting is not valid.
func Idempotency(c IdempotencyConfig) dunlin.Middleware {
	bounded := c.setDefaults()
	if err := c.validate(); err != nil {
		panic("middleware: " + err.Error())
	}
	undo, quota := &claimsToUndo{config: &c}, newKeyQuota(c.UserBytes, c.TTL)
	if c.StoreBytes > 0 && !bounded {
		quota.all = newKeyQuota(c.StoreBytes, c.TTL)
	}
	return func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			// All lines count: one that is empty hides no other.
			if len(r.HeaderBytes(idempotencyKey)) == 0 && !c.Required || !slices.Contains(c.Methods, r.Method()) {
				return next(r)
			}
			key, err := readIdempotencyKey(r, r.Header(idempotencyKey))
			if err != nil {
				return dunlin.Problem(dunlin.ProblemDetails{Status: http.StatusBadRequest, Title: "Idempotency-Key is missing or malformed", Detail: err.Error()})
			}
			user := ""
			if c.User != nil {
				user = c.User(r)
			}
			if user == "" && !c.Anonymous {
				return dunlin.Problem(dunlin.ProblemDetails{
					Status: http.StatusForbidden, Detail: "an Idempotency-Key belongs to a user, and none is known for this request",
				})
			}
			k, err := c.identify(r, user, key)
			if err != nil {
				return dunlin.Error(err)
			}
			k.undo, k.quota, k.holder = undo, quota, quota.holderOf(r, user)
			return k.serve(r, next)
		}
	}
}

const idempotencyKey = "Idempotency-Key"

// setDefaults reports whether the store bounds the bytes of all keys.
func (c *IdempotencyConfig) setDefaults() (bounded bool) {
	if c.Methods == nil {
		c.Methods = []string{http.MethodPost, http.MethodPatch}
	}
	if c.TTL == 0 {
		c.TTL = 24 * time.Hour
	}
	if c.Lease == 0 {
		c.Lease = c.TTL
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = 1 << 20
	}
	if c.StoreBytes < 0 || c.UserBytes < 0 || c.Store == nil {
		return false // which validate refuses
	}
	share := int64(0)
	if s, ok := c.Store.(interface {
		Bound(prefix string, most int64) int64
	}); ok {
		share = s.Bound(keysPrefix, c.StoreBytes)
	}
	if c.UserBytes == 0 {
		c.UserBytes = defaultUserBytes
		if most := cmp.Or(share, c.StoreBytes); most > 0 {
			c.UserBytes = max(min(c.UserBytes, most/2), 1)
		}
	}
	c.Logger = patient(c.Logger)
	return share > 0
}

// keysPrefix is what the keys in the store begin with.
const keysPrefix = "idempotency:"

func (c *IdempotencyConfig) validate() error {
	switch {
	case c.Store == nil:
		return errors.New("IdempotencyConfig.Store is nil: what is done once must be written down somewhere")
	case c.User == nil && !c.Anonymous:
		return errors.New("IdempotencyConfig.User is nil: give the function that returns the authenticated user, such as middleware.User, or set Anonymous")
	case c.StoreBytes < 0 || c.UserBytes < 0:
		return fmt.Errorf("IdempotencyConfig.StoreBytes and UserBytes (%d, %d) must not be negative", c.StoreBytes, c.UserBytes)
	case c.TTL < 0 || c.Lease < 0:
		return fmt.Errorf("IdempotencyConfig.TTL and Lease (%v, %v) must not be negative", c.TTL, c.Lease)
	case c.MaxBytes < 0:
		return fmt.Errorf("IdempotencyConfig.MaxBytes is %d: it must not be negative", c.MaxBytes)
	}
	return nil
}

// longestKey is that of an idempotency key, in bytes.
const longestKey = 255

// readIdempotencyKey returns the key of a request: a String of RFC 9651, or, as many clients send it, the same
// without quotes.
func readIdempotencyKey(r *dunlin.Request, header string) (string, error) {
	lines := 0
	for name := range r.Headers() {
		if strings.EqualFold(name, idempotencyKey) {
			lines++
		}
	}
	if lines > 1 {
		return "", errors.New("there is more than one Idempotency-Key")
	}
	header = strings.Trim(header, " ")
	if header == "" {
		return "", errors.New("this operation needs an Idempotency-Key, such as a random UUID in quotes")
	}
	key, ok := header, true
	if header[0] == '"' {
		key, ok = unquote(header)
	} else {
		for i := range len(key) {
			ok = ok && key[i] > ' ' && key[i] <= '~' && strings.IndexByte(`",;\`, key[i]) < 0
		}
	}
	if !ok || key == "" {
		return "", errors.New("the Idempotency-Key is no String of RFC 9651: visible ASCII in quotes")
	}
	if len(key) > longestKey {
		return "", fmt.Errorf("the Idempotency-Key is longer than %d bytes", longestKey)
	}
	return key, nil
}

// unquote reads a String of RFC 9651 section 3.3.3. Parameters, of which none are defined, may follow.
func unquote(s string) (string, bool) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return b.String(), i+1 == len(s) || s[i+1] == ';'
		case c == '\\':
			i++
			if i == len(s) || s[i] != '"' && s[i] != '\\' {
				return "", false
			}
			b.WriteByte(s[i])
		case c < ' ' || c > '~':
			return "", false
		default:
			b.WriteByte(c)
		}
	}
	return "", false
}

// What is kept of a request under its key:
//
//	state (1) │ fingerprint (32) │ the answer, of one that has ended, or a token (16) of the one that runs
const (
	stateRunning  = 'r'
	stateFree     = 'f' // whoever had it made no use of it
	stateAnswered = 'a'
	stateUnkept   = 'u' // it has ended, and its answer was not kept

	recordHead = 1 + sha256.Size
)

// claim is a key that a request has.
type claim struct {
	config      *IdempotencyConfig
	key         string // in the store
	fingerprint [sha256.Size]byte
	shared      bool // by all clients without a user
	token       [16]byte
	until       time.Time // its lease is over then, in the store too
	undo        *claimsToUndo
	quota       *keyQuota
	holder      uint64 // to whose quota it counts
	version     store.Version
}

// serve answers the request of a claim.
func (k *claim) serve(r *dunlin.Request, next dunlin.Action) dunlin.Response {
	if wait, short := k.quota.take(k.holder, claimCost); short != nil {
		return k.overQuota(r, wait, short)
	}
	resp, runs := k.claim(r)
	if !runs {
		k.quota.giveBack(k.holder, claimCost)
		return resp
	}
	return k.run(r, next)
}

// claim has the store note that the request runs, or returns the answer to a request that does not.
func (k *claim) claim(r *dunlin.Request) (resp dunlin.Response, runs bool) {
	c, ctx := k.config, r.Context()
	k.until = time.Now().Add(c.Lease + time.Minute)
	_, _ = rand.Read(k.token[:]) // never fails
	for have := store.Absent; ; {
		var err error
		k.version, err = c.Store.Set(ctx, k.key, k.record(stateRunning), have, c.Lease)
		if err == nil {
			return resp, true
		}
		if !errors.Is(err, store.ErrConflict) {
			if !errors.Is(err, store.ErrFull) && !errors.Is(err, store.ErrClosed) {
				k.undo.add(k) // nobody knows whether it is claimed, or will be
			}
			return notKept(err), false
		}
		item, err := c.Store.Get(ctx, k.key)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return outstanding(), false // it was given back this moment
		case err != nil:
			return notKept(err), false
		case len(item.Value) < recordHead:
			return notKept(fmt.Errorf("middleware: under the key %s of the store is no record of a request", k.key)), false
		case bytes.Equal(item.Value, k.record(stateRunning)): // the answer to the claim was lost on the way, and it was sent again
			k.version = item.Version
			return resp, true
		case item.Value[0] != stateFree:
			return k.again(item.Value), false
		}
		have = item.Version
	}
}

// identify returns the claim of a request, whose body it reads.
func (c *IdempotencyConfig) identify(r *dunlin.Request, user, key string) (*claim, error) {
	body, err := r.Bytes()
	if err != nil {
		return nil, err
	}
	name := digest([]byte(user), []byte(r.Method()), []byte(r.Route()), []byte(key))
	return &claim{
		config: c, shared: user == "", key: keysPrefix + inBase64.EncodeToString(name[:]),
		fingerprint: digest([]byte(r.Host()), []byte(r.Path()), []byte(r.RawQuery()), []byte(r.Header("Content-Type")), body),
	}, nil
}

// digest returns a hash of parts, which no other parts have.
func digest(parts ...[]byte) (sum [sha256.Size]byte) {
	h := sha256.New()
	var length [8]byte
	for _, part := range parts {
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		_, _ = h.Write(length[:]) // a hash takes everything
		_, _ = h.Write(part)
	}
	h.Sum(sum[:0])
	return sum
}

func (k *claim) record(state byte) []byte {
	record := append([]byte{state}, k.fingerprint[:]...)
	if state == stateRunning {
		record = append(record, k.token[:]...)
	}
	return record
}

// again answers a request whose key is taken, by what is kept under it.
func (k *claim) again(record []byte) dunlin.Response {
	if [sha256.Size]byte(record[1:recordHead]) != k.fingerprint {
		return dunlin.Problem(dunlin.ProblemDetails{
			Status: http.StatusUnprocessableEntity, Title: "Idempotency-Key is already used",
			Detail: "the key was used for a request with another host, path, query, media type or body; take a new one for what is new",
		})
	}
	switch record[0] {
	case stateRunning:
		return outstanding()
	case stateAnswered:
		if resp, ok := parseResponse(slices.Clone(record[recordHead:])); ok {
			return resp.Header("Idempotent-Replayed", "true")
		}
	}
	return dunlin.Problem(dunlin.ProblemDetails{
		Status: http.StatusConflict, Title: "The answer was not kept",
		Detail: "the request with this Idempotency-Key was carried out, but its answer cannot be sent again",
	})
}

func outstanding() dunlin.Response {
	return dunlin.Problem(dunlin.ProblemDetails{
		Status: http.StatusConflict, Title: "A request is outstanding for this Idempotency-Key",
		Detail: "the first request with this key has not ended yet",
	}).Header("Retry-After", "1")
}

// notKept answers while nobody knows whether a key is new.
func notKept(err error) dunlin.Response {
	return dunlin.Problem(dunlin.ProblemDetails{
		Status: http.StatusServiceUnavailable, Detail: "requests with an Idempotency-Key cannot be carried out at the moment", Cause: err,
	}).Header("Retry-After", "1")
}

// run runs the action, once, and keeps its answer.
func (k *claim) run(r *dunlin.Request, next dunlin.Action) dunlin.Response {
	ctx := context.WithoutCancel(r.Context()) // the client may leave, the answer is kept all the same
	returned := false
	defer func() {
		if !returned { // the connection is dropped, or the goroutine ended: something may have been done
			k.keep(ctx, k.record(stateUnkept))
		}
	}()
	inside.Gather(r, int64(k.config.MaxBytes))
	resp := next(r)
	returned = true
	switch status := resp.StatusCode(); {
	case saysUndone(status), status == http.StatusServiceUnavailable && resp.Get("Retry-After") != "" && !hasCause(resp.Err()),
		status >= http.StatusInternalServerError && r.Context().Err() != nil && errors.Is(resp.Err(), context.Canceled):
		if err := k.config.Store.Expire(ctx, k.key, 0); err != nil && !errors.Is(err, store.ErrNotFound) {
			k.undo.add(k)
		}
		k.quota.giveBack(k.holder, claimCost)
	case resp.Len() < 0:
		k.keep(ctx, k.record(stateUnkept))
	default:
		record := appendResponse(k.record(stateAnswered), resp, func(name string) bool { return k.shared && isField(name, "Set-Cookie") })
		if len(record) > k.config.MaxBytes || !k.holds(len(record)) {
			record = k.record(stateUnkept)
		}
		k.keep(ctx, record)
	}
	return resp
}

// hasCause reports whether an answer is one to a failure, before which something may have been done.
func hasCause(err error) bool {
	p, ok := errors.AsType[*dunlin.ProblemDetails](err)
	return err != nil && (!ok || p.Cause != nil)
}

// holds takes the bytes of an answer of the quotas.
func (k *claim) holds(n int) bool {
	_, short := k.quota.take(k.holder, int64(n))
	switch {
	case short == nil:
		return true
	case short == k.quota:
		k.notKept("the user's keys hold as much as they may: IdempotencyConfig.UserBytes")
	default:
		k.notKept("all keys hold as much as they may: IdempotencyConfig.StoreBytes")
	}
	return false
}

// keep writes how a request has ended. A store that is full has room for a note that the answer was not kept. What cannot be written stays
// running for the store: repetitions get 409.
func (k *claim) keep(ctx context.Context, record []byte) {
	st := k.config.Store
	_, err := st.Set(ctx, k.key, record, k.version, k.config.TTL)
	if errors.Is(err, store.ErrFull) {
		_, _ = st.Set(ctx, k.key, k.record(stateUnkept), k.version, k.config.TTL)
	}
	if err != nil {
		k.notKept(err)
	}
}

// notKept logs that an answer was not kept, once a second at most.
func (k *claim) notKept(why any) {
	if n, due := k.undo.unkept.Note(); due {
		k.config.Logger.Error("answers could not be kept under their idempotency keys: repetitions get 409", "error", why, "count", n)
	}
}
