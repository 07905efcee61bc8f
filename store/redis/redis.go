// Package redis implements a store of package store in Redis or Valkey, single or as a cluster. It uses rueidis,
// which pipelines the commands of many goroutines, and is a module of its own.
//
//	import _ "github.com/dunlinhttp/dunlin/store/redis"
//
//	st, err := store.Open(os.Getenv("DUNLIN_STORE")) // redis://10.0.0.1:6379
//
// Every call has a deadline and passes a circuit breaker, see store.Guard. While Redis is unavailable, calls fail
// with store.ErrUnavailable, and at once while the breaker is open. In a cluster each master has a breaker of
// its own, so that keys on other masters stay available. Each call is a script with one key. Thus a value or a
// number is stored on one node of a cluster, and each call is atomic there.
//
// Redis replicates asynchronously. If a master fails before its replica has received a write, the write is lost,
// and a claimed key can be claimed again. With Config.Replicas, replicas confirm values before a call returns;
// idempotency keys and sessions are values. Numbers, such as those of rate limits, are not confirmed: after the
// failure of a master, a client may use the last moment's part of a limit again.
//
// Set maxmemory-policy noeviction. Otherwise Redis may drop keys that have not expired. With it, a value without
// room fails with store.ErrFull.
//
//	redis.go       settings, the connection
//	calls.go       the calls as scripts
//	master.go      a new connection after another Redis has become the master
//	connecting.go  deadlines of calls while a connection is made
//	slots.go       the keys that are on the same node of a cluster
//	replicas.go    writes that replicas confirm
//	topics.go      messages
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

// Config names the Redis servers, and holds the settings of the store. The zero value of a field stands for its default.
type Config struct {
	// Addrs are host:port of one node, or of some nodes of a cluster. Default: 127.0.0.1:6379.
	Addrs []string

	Username, Password string
	DB                 int         // of a single Redis
	TLS                *tls.Config // nil: clear text

	// Prefix is the prefix of all keys and topics, so that several applications can share a Redis. In a cluster, a prefix that
	// contains text in braces stores all keys on one node. Braces in a key itself do not choose its node. Default: "dunlin:".
	Prefix string

	// Guard limits every call.
	Guard store.GuardConfig

	// Replicas is the number of replicas that must confirm the write or the deletion of a value before the call returns (WAIT).
	// A write that too few replicas confirm in time fails with ErrUnconfirmed, although Redis may have executed it. A request
	// with an idempotency key is then refused and not executed. A write takes one more round trip, to the replica. Default: 0.
	//
	// A confirmed value is lost only if all these replicas fail together with the master, or if a replica that has not
	// confirmed the value becomes the master. Thus no idempotency key and no session is lost with a master that has no more
	// than this number of replicas. Each master needs at least this number of replicas, also after a failover. Otherwise
	// nothing can be written.
	Replicas int

	// BufferBytes is the size of each of the two buffers of a connection. There are two connections to each node. With Replicas
	// there are up to 64 more to each master, one for each waiting write. Unused ones are closed once a minute. Default: 32
	// KiB.
	BufferBytes int
}

// Open connects to Redis. It fails if no node answers.
func Open(c Config) (*store.Guarded, error) {
	option := rueidis.ClientOption{InitAddress: c.Addrs, Username: c.Username, Password: c.Password, SelectDB: c.DB, TLSConfig: c.TLS}
	if len(c.Addrs) == 0 {
		option.InitAddress = []string{"127.0.0.1:6379"}
	}
	return open(option, c)
}

// OpenURL is like Open, for a URL such as
//
//	redis://user:password@10.0.0.1:6379/0?addr=10.0.0.2:6379&prefix=shop:&replicas=1&timeout=100ms&failures=5&cooldown=1s
//
// The scheme rediss stands for TLS, addr for further nodes of a cluster, and replicas for Config.Replicas. The last three
// parameters are fields of store.GuardConfig. Errors do not contain the URL.
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
			continue // rueidis parses this parameter and the following ones
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
	replyTimeout = 5 * time.Second // a connection without a reply for so long is closed, whatever the deadlines of calls
	ringScale    = 11              // 2^11 commands in flight on a connection. A further one waits, whatever its deadline

	// maxAtOnce is the maximum number of calls that wait for a response. Abandoned calls keep their place in the connection's
	// queue, which must not become full.
	maxAtOnce = 1024
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
	option.AlwaysPipelining = true // otherwise the only call on a connection would wait for its deadline even after its context is canceled
	option.DisableCache = true     // shared values must not be read from a cache
	option.ConnWriteTimeout = replyTimeout
	option.Dialer.Timeout = dialTimeout
	gate := &gate{next: option.DialCtxFn} // DialCtxFn is set for the URL of a Unix socket
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

// withoutSecrets returns an error that does not contain the password of the URL.
func withoutSecrets(u *url.URL, err error) error {
	password, _ := u.User.Password()
	if password != "" && strings.Contains(err.Error(), password) {
		return errors.New("the URL is malformed")
	}
	return err
}
