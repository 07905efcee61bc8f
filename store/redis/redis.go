// Package redis is a store of package store in Redis or Valkey, single or as a cluster. It uses rueidis,
// which pipelines the commands of many goroutines, and is a module of its own.
//
//	import _ "github.com/dunlinhttp/dunlin/store/redis"
//
//	st, err := store.Open(os.Getenv("DUNLIN_STORE")) // redis://10.0.0.1:6379
//
// Every call has a deadline and passes a circuit breaker, see store.Guard: while Redis is away calls fail
// with store.ErrUnavailable, at once when the breaker has opened. In a cluster each master has a breaker of
// its own, so that keys on the others stay in use. Each call is a script with one key, so a value or number
// lives on one node of a cluster and each call is atomic there.
//
// Redis replicates asynchronously: if a master fails before its replica has what was written, that is lost,
// and what was claimed can be claimed again. With Config.Replicas, values, on which idempotency keys and
// sessions stand, are confirmed by replicas before a call returns. Numbers, such as those of rate limits, are
// not: after the failure of a master a key may have again what it used in the last moment.
//
// Set maxmemory-policy noeviction, or Redis may drop what has not expired. A value without room then fails
// with store.ErrFull.
//
//	redis.go   settings, the connection
//	calls.go   the calls as scripts
//	master.go  another connection, where another Redis has become the master
//	connecting.go calls wait no longer than their time while a connection is made
//	slots.go   which keys are on the same machine of a cluster
//	replicas.go writes that replicas confirm
//	topics.go  messages
package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/dunlinhttp/dunlin/store"
)

func init() {
	for _, scheme := range []string{"redis", "rediss", "valkey", "valkeys"} {
		store.Register(scheme, func(u *url.URL) (store.Store, error) {
			g, err := OpenURL(u)
			if err != nil {
				return nil, err // and no Store that is not nil and has a nil Guarded within
			}
			return g, nil
		})
	}
}

// Config says where Redis is. The zero value of a field stands for its default.
type Config struct {
	// Addrs are host:port of one node, or of some nodes of a cluster. Default: 127.0.0.1:6379.
	Addrs []string

	Username, Password string
	DB                 int         // of a single Redis
	TLS                *tls.Config // nil: clear text

	// Prefix is put in front of all keys and topics, so that several applications can share a Redis. In a cluster a prefix with text in
	// braces puts all of them on one node; braces in a key itself do not choose its node. Default: "dunlin:".
	Prefix string

	// Guard bounds every call.
	Guard store.GuardConfig

	// Replicas is how many replicas must confirm a value that is written or ended before the call returns
	// (WAIT). A write that fewer confirm in time fails with ErrUnconfirmed, though Redis may have it: a
	// request with an idempotency key is then refused and not carried out. A write takes a round trip to the
	// replica longer. Default: 0.
	//
	// A confirmed value is lost only if all these replicas fail along with the master, or if one that has not
	// confirmed it takes the master's place. So no idempotency key and no session is lost with a master if
	// each has no more replicas than are waited for. Each master needs as many, also one that has taken
	// another's place, or nothing can be written.
	Replicas int

	// BufferBytes is the size of each connection's two buffers. There are two connections to each node, and with Replicas up to 64 more to each
	// master, one for each write that waits; those that nobody uses are closed once a minute. Default: 32 KiB.
	BufferBytes int
}

// Open connects to Redis. It fails when no node answers.
func Open(c Config) (*store.Guarded, error) {
	option := rueidis.ClientOption{InitAddress: c.Addrs, Username: c.Username, Password: c.Password, SelectDB: c.DB, TLSConfig: c.TLS}
	if len(c.Addrs) == 0 {
		option.InitAddress = []string{"127.0.0.1:6379"}
	}
	return open(option, c)
}

// OpenURL is Open for a URL such as
//
//	redis://user:password@10.0.0.1:6379/0?addr=10.0.0.2:6379&prefix=shop:&replicas=1&timeout=100ms&failures=5&cooldown=1s
//
// where rediss is TLS, addr names further nodes of a cluster, replicas is Config.Replicas, and the last three are those of store.GuardConfig. Errors do not
// repeat the URL.
func OpenURL(u *url.URL) (*store.Guarded, error) {
	if u.Opaque != "" {
		return nil, fmt.Errorf("store/redis: the URL has no address: it must begin with %s://", u.Scheme)
	}
	own := Config{}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("store/redis: the settings in the URL are malformed: %w", err)
	}
	for name, values := range query {
		if len(values) > 1 && name != "addr" {
			return nil, fmt.Errorf("store/redis: the URL says %s %d times", name, len(values))
		}
		var err error
		value := values[0]
		switch name {
		case "prefix":
			own.Prefix = value
		case "timeout":
			own.Guard.Timeout, err = time.ParseDuration(value)
		case "cooldown":
			own.Guard.Cooldown, err = time.ParseDuration(value)
		case "failures":
			own.Guard.Failures, err = strconv.Atoi(value)
		case "replicas":
			own.Replicas, err = strconv.Atoi(value)
		case "protocol":
			if value != "2" && value != "3" {
				err = errors.New("it must be 2 or 3")
				break
			}
			continue // rueidis's, as what follows
		case "addr", "db", "master_set", "skip_verify", "client_name":
			continue
		default:
			return nil, fmt.Errorf("store/redis: the URL has a setting %q, which is none of addr, client_name, cooldown, db, failures, master_set, prefix, protocol, replicas, skip_verify and timeout", name)
		}
		if err != nil {
			return nil, fmt.Errorf("store/redis: the URL says %s=%s: %w", name, value, err)
		}
		query.Del(name)
	}
	if g := own.Guard; g.Timeout < 0 || g.Cooldown < 0 || g.Failures < 0 {
		return nil, errors.New("store/redis: timeout, cooldown and failures of the URL must not be negative")
	}
	if own.Replicas < 0 {
		return nil, fmt.Errorf("store/redis: the URL says replicas=%d: it must not be negative", own.Replicas)
	}
	plain := *u
	plain.RawQuery = query.Encode()
	option, err := rueidis.ParseURL(plain.String())
	if err != nil {
		return nil, fmt.Errorf("store/redis: %w", withoutSecrets(u, err))
	}
	return open(option, own)
}

const (
	dialTimeout  = 2 * time.Second
	replyTimeout = 5 * time.Second // after which a connection is given up, whatever the deadlines of calls
	ringScale    = 11              // commands in flight on a connection: 2^11. One more waits, whatever its deadline

	// mostAtOnce bounds the calls that wait for an answer: those that were given up keep their place on the connection, which must not become full.
	mostAtOnce = 1024
)

func open(option rueidis.ClientOption, c Config) (*store.Guarded, error) {
	if c.Replicas < 0 {
		return nil, fmt.Errorf("store/redis: Config.Replicas is %d: it must not be negative", c.Replicas)
	}
	if c.Replicas > 0 {
		option.BlockingPoolSize = writersToNode
		option.BlockingPoolCleanup = writerIdle
	}
	if c.Prefix == "" {
		c.Prefix = "dunlin:"
	}
	if c.BufferBytes == 0 {
		c.BufferBytes = 32 << 10
	}
	option.ReadBufferEachConn, option.WriteBufferEachConn = c.BufferBytes, c.BufferBytes
	option.RingScaleEachConn = ringScale
	option.PipelineMultiplex = 1
	option.AlwaysPipelining = true // a call that is alone would wait for its deadline, though its context has ended before
	option.DisableCache = true     // what is shared is asked for anew
	option.ConnWriteTimeout = replyTimeout
	option.Dialer.Timeout = dialTimeout
	gate := &gate{next: option.DialCtxFn} // that of a URL of a Unix socket
	option.DialCtxFn = gate.dial
	dial := func() (rueidis.Client, error) { return rueidis.NewClient(option) }
	client, err := dial()
	if err != nil {
		return nil, fmt.Errorf("store/redis: %s: %w", strings.Join(option.InitAddress, ", "), err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	s := newStore(client, c.Prefix, divide(ctx, client), gate)
	s.replicas = c.Replicas
	if client.Mode() != rueidis.ClientModeCluster {
		s.dial = dial
	}
	for range s.Shards() {
		s.writers = append(s.writers, make(chan struct{}, writersToNode))
	}
	return store.Guard(s, c.Guard), nil
}

// withoutSecrets returns an error that does not say what the URL's password is.
func withoutSecrets(u *url.URL, err error) error {
	password, _ := u.User.Password()
	if password != "" && strings.Contains(err.Error(), password) {
		return errors.New("the URL is malformed")
	}
	return err
}
