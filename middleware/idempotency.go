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
	"github.com/dunlinhttp/dunlin/ext"
	"github.com/dunlinhttp/dunlin/store"
)

// IdempotencyConfig has the settings of [Idempotency]. Store must be set. Any other zero field selects
// its documented default.
type IdempotencyConfig struct {
	// Store stores the responses. Wrap a store on another machine in a [store.Guard].
	Store store.Store

	// Required answers 400 to requests without a key. Default: the middleware does not handle such requests.
	Required bool

	// Methods are the methods of the requests that the middleware handles. Default: POST and PATCH.
	Methods []string

	// User returns the authenticated user of a request. Keys belong to a user: two users may choose
	// the same key. Return [User] after BasicAuth and KeyAuth, the user of a session, or the subject
	// of a token, but never the token itself, which changes when it is renewed. If User returns "", a
	// request with a key is answered with 403, unless Anonymous is set. User must be set unless
	// Anonymous is set.
	User func(*dunlin.Request) string

	// Anonymous allows keys of requests without a user. Such requests share their keys: a client that
	// knows the key and the request of another client gets the response to it, without the cookies.
	// Default: such requests are answered with 403.
	Anonymous bool

	// TTL is the time for which a response is stored. Default: 24 hours.
	TTL time.Duration

	// Lease is the maximum time for which a request counts as running, from its start, even if its process has died. After that a
	// retry runs the action again, although the outcome of the first run is unknown. Default: TTL.
	Lease time.Duration

	// MaxBytes limits a stored response, in bytes. The response of a standard handler is buffered up
	// to MaxBytes. Beyond 32 KB the buffer is charged to the request in the app's memory budget. If
	// the budget has no room, the response is neither buffered nor stored. Default: 1 MiB.
	MaxBytes int

	// StoreBytes limits the bytes of all keys in the store, so that sessions and other uses of the
	// store have room. Beyond it, requests with new keys are answered with 503. A [store.Memory]
	// counts these bytes itself. Its default is a quarter of MemoryConfig.MaxBytes; a store for keys
	// alone may use all of MaxBytes. With other stores, such as a store in Redis, each process counts
	// approximately what it has stored within TTL, as for UserBytes, and the default is no limit. Set
	// a limit if sessions share the store, or use a separate store for the keys.
	StoreBytes int64

	// UserBytes limits approximately the bytes of one user's keys within TTL. Each process counts
	// only what it has stored itself. Without a user the limit applies to the address (for IPv6 to
	// the /64). Beyond it, requests with new keys are answered with 429. Default: 64 MiB, but at most
	// half of StoreBytes.
	UserBytes int64

	// Logger logs responses that could not be stored, at most once a second. Default:
	// slog.Default().
	Logger *slog.Logger
}

// Idempotency lets clients retry a request without a second execution. A retry with a known
// Idempotency-Key gets the first response, with Idempotent-Replayed: true. Idempotency follows
// draft-ietf-httpapi-idempotency-key-header-07. It answers with these statuses:
//
//	400  the key is malformed, or it is required and missing
//	403  the user is unknown
//	409  the first request with the key is running, or its response was not stored
//	422  the first request with the key had another host, path, query, media type or body
//	429  the keys of the user have reached IdempotencyConfig.UserBytes
//	503  all keys have reached IdempotencyConfig.StoreBytes
//
// A key belongs to one user, method and route. The first request with a key claims it in the store by
// one atomic step. Concurrent retries, on any machine, are answered with 409 and Retry-After. Every
// response of the action is stored before it is sent, including errors. Responses that report that
// nothing was done are not stored, and release the key: 400, 401, 403, 404, 405, 406, 411 to 417, 421,
// 422, 426, 428, 429 and 431; 503 with Retry-After and without a cause; and the response of an action
// that ended with context.Canceled because its client disconnected. An action that has done something
// must use another status, such as 409.
//
// An action runs at most once for a key. While the store is unavailable, requests with a key are
// answered with 503, and can be sent again later. If a response cannot be stored, or is a stream,
// retries are answered with 409. The response of a [Proxy] or another standard handler with a length
// up to MaxBytes is not a stream. Idempotency reads the whole request body, up to the route's limit.
//
// Put Idempotency after authentication, and after middleware that depends on header fields of each
// request, such as Compress and CORS. Idempotency panics for an invalid setting.
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
			// HeaderBytes joins all lines, because a first empty line must not hide a second line.
			if len(ext.HeaderBytes(r, idempotencyKey)) == 0 && !c.Required || !slices.Contains(c.Methods, r.Method()) {
				return next(r)
			}
			key, err := readIdempotencyKey(r, r.Header(idempotencyKey))
			if err != nil {
				return dunlin.Problem(&dunlin.ProblemDetails{Status: http.StatusBadRequest, Title: "Idempotency-Key is missing or malformed", Detail: err.Error()})
			}
			user := ""
			if c.User != nil {
				user = c.User(r)
			}
			if user == "" && !c.Anonymous {
				return dunlin.Problem(&dunlin.ProblemDetails{
					Status: http.StatusForbidden, Detail: "an Idempotency-Key needs an authenticated user, and this request has none",
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

// setDefaults sets the defaults. It reports whether the store limits the bytes of all keys.
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
		return false // validate rejects it
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

// keysPrefix is the prefix of the keys in the store.
const keysPrefix = "idempotency:"

func (c *IdempotencyConfig) validate() error {
	switch {
	case c.Store == nil:
		return errors.New("IdempotencyConfig.Store is nil: set a store for the records of requests")
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

// longestKey is the maximum length of an idempotency key, in bytes.
const longestKey = 255

// readIdempotencyKey returns the key of a request: a String of RFC 9651, or the text without quotes,
// which many clients send.
func readIdempotencyKey(r *dunlin.Request, header string) (string, error) {
	lines := 0
	for name := range r.Headers() {
		if strings.EqualFold(name, idempotencyKey) {
			lines++
		}
	}
	if lines > 1 {
		return "", errors.New("the request has more than one Idempotency-Key")
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
		return "", errors.New("the Idempotency-Key is not a String of RFC 9651: it must be visible ASCII in quotes")
	}
	if len(key) > longestKey {
		return "", fmt.Errorf("the Idempotency-Key is longer than %d bytes", longestKey)
	}
	return key, nil
}

// unquote decodes a String of RFC 9651 section 3.3.3. It ignores parameters after the String.
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

// A record is the value of a key in the store:
//
//	state (1) │ fingerprint (32) │ the response, if it is stored, or the token (16) of the running request
const (
	stateRunning  = 'r'
	stateFree     = 'f' // the key was released, and no request has run
	stateAnswered = 'a'
	stateUnkept   = 'u' // the request has ended, and its response was not stored

	recordHead = 1 + sha256.Size
)

// A claim is the key of a request.
type claim struct {
	config      *IdempotencyConfig
	key         string // in the store
	fingerprint [sha256.Size]byte
	shared      bool // the request has no user: requests without a user share their keys
	token       [16]byte
	until       time.Time // the lease in the store has ended by this time
	undo        *claimsToUndo
	quota       *keyQuota
	holder      uint64 // holder of the quota, see holderOf
	version     store.Version
}

// serve answers the request of a claim.
func (k *claim) serve(r *dunlin.Request, next dunlin.Action) dunlin.Response {
	if wait, short := k.quota.reserve(k.holder, claimCost); short != nil {
		return k.overQuota(r, wait, short)
	}
	resp, runs := k.claim(r)
	if !runs {
		k.quota.giveBack(k.holder, claimCost)
		return resp
	}
	return k.run(r, next)
}

// claim writes to the store that the request is running. If the action must not run, claim returns the
// response.
func (k *claim) claim(r *dunlin.Request) (resp dunlin.Response, runs bool) {
	c, ctx := k.config, r.Context()
	k.until = time.Now().Add(c.Lease + time.Minute)
	_, _ = rand.Read(k.token[:]) // never fails
	for have := store.VersionAbsent; ; {
		var err error
		k.version, err = c.Store.Set(ctx, k.key, k.record(stateRunning), have, c.Lease)
		if err == nil {
			return resp, true
		}
		if !errors.Is(err, store.ErrConflict) {
			if !errors.Is(err, store.ErrFull) && !errors.Is(err, store.ErrClosed) {
				k.undo.add(k) // the store may have executed the claim, or may still execute it
			}
			return notKept(err), false
		}
		item, err := c.Store.Get(ctx, k.key)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return outstanding(), false // another request has released the key meanwhile
		case err != nil:
			return notKept(err), false
		case len(item.Value) < recordHead:
			return notKept(fmt.Errorf("middleware: read idempotency record: the value of store key %s is not a record", k.key)), false
		case bytes.Equal(item.Value, k.record(stateRunning)): // an earlier Set of this request has succeeded, but its result was lost
			k.version = item.Version
			return resp, true
		case item.Value[0] != stateFree:
			return k.again(item.Value), false
		}
		have = item.Version
	}
}

// identify returns the claim of a request. It reads the request body.
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

// digest returns an unambiguous hash of parts.
func digest(parts ...[]byte) (sum [sha256.Size]byte) {
	h := sha256.New()
	var length [8]byte
	for _, part := range parts {
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		_, _ = h.Write(length[:]) // never fails
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

// again answers a request whose key an earlier request has claimed, from the record of the key.
func (k *claim) again(record []byte) dunlin.Response {
	if [sha256.Size]byte(record[1:recordHead]) != k.fingerprint {
		return dunlin.Problem(&dunlin.ProblemDetails{
			Status: http.StatusUnprocessableEntity, Title: "Idempotency-Key is already used",
			Detail: "the key was used for a request with another host, path, query, media type or body; use a new key for a new request",
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
	return dunlin.Problem(&dunlin.ProblemDetails{
		Status: http.StatusConflict, Title: "The response was not stored",
		Detail: "the request with this Idempotency-Key was executed, but its response was not stored and cannot be repeated",
	})
}

func outstanding() dunlin.Response {
	return dunlin.Problem(&dunlin.ProblemDetails{
		Status: http.StatusConflict, Title: "A request is outstanding for this Idempotency-Key",
		Detail: "the first request with this key is still running",
	}).Header("Retry-After", "1")
}

// notKept returns the response while the store is unavailable.
func notKept(err error) dunlin.Response {
	return dunlin.Problem(&dunlin.ProblemDetails{
		Status: http.StatusServiceUnavailable, Detail: "requests with an Idempotency-Key are temporarily unavailable", Cause: err,
	}).Header("Retry-After", "1")
}

// run runs the action and stores its response.
func (k *claim) run(r *dunlin.Request, next dunlin.Action) dunlin.Response {
	ctx := context.WithoutCancel(r.Context()) // the response is stored even if the client disconnects
	returned := false
	defer func() {
		if !returned { // a panic or runtime.Goexit: the action may have done something
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

// hasCause reports whether the error of a response has a cause. Then the action may have done something
// before it failed.
func hasCause(err error) bool {
	p, ok := errors.AsType[*dunlin.ProblemDetails](err)
	return err != nil && (!ok || p.Cause != nil)
}

// holds charges n bytes of a response to the quotas. It reports false if a quota has too few bytes left.
func (k *claim) holds(n int) bool {
	_, short := k.quota.reserve(k.holder, int64(n))
	switch {
	case short == nil:
		return true
	case short == k.quota:
		k.notKept("the user's keys have reached their limit: IdempotencyConfig.UserBytes")
	default:
		k.notKept("all keys have reached their limit: IdempotencyConfig.StoreBytes")
	}
	return false
}

// keep stores the outcome of a request. If the store is full, it replaces the record by one without a response. If nothing can
// be stored, the key remains in the state running, and retries are answered with 409.
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

// notKept logs that a response was not stored, once a second at most.
func (k *claim) notKept(why any) {
	if n, due := k.undo.unkept.Note(); due {
		k.config.Logger.Error("idempotency: storing responses failed: repetitions get 409", "error", why, "count", n)
	}
}
