// Package data is the data layer of the peers that use a database: TechEmpower's tables in PostgreSQL, accessed through one
// connection pool, and an upstream server that responds after a delay. The peers differ only in the framework.
package data

import (
	"context"
	"flag"
	"net"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/dunlinhttp/dunlin/bench/peers/service"
)

// PoolSize is the number of connections to the database.
const PoolSize = 32

// Dial connects to the database and the upstream server.
var Dial = new(net.Dialer).DialContext

// HTML is the media type of the page of fortunes.
const HTML = "text/html; charset=utf-8"

// A Source is the data of one peer. It is safe for use by many goroutines.
type Source struct {
	pool     *pgxpool.Pool
	cache    map[int32]World
	upstream upstream
}

// Listen reads the flags, listens as service.Listen does, and connects to those of the database and the upstream server
// that have a flag set. It ends the program when that fails.
func Listen(peer string) (net.Listener, *Source) {
	connect := Flags(peer)
	return service.Listen(peer), connect()
}

// Flags registers the flags of the database and the upstream server. connect, called after they are parsed, connects to
// those that have a flag set. It ends the program when that fails.
func Flags(peer string) (connect func() *Source) {
	database := flag.String("database", "", "`URL` of the PostgreSQL database")
	upstream := flag.String("upstream", "", "`address` of the upstream server for /wait")
	return func() *Source {
		s := &Source{upstream: newUpstream(*upstream)}
		if *database != "" {
			if err := s.connect(*database); err != nil {
				service.Fail(peer, err)
			}
		}
		return s
	}
}

// connect opens all connections of the pool and fills the cache.
func (s *Source) connect(database string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	config, err := pgxpool.ParseConfig(database)
	if err != nil {
		return err
	}
	config.MaxConns = PoolSize
	config.ConnConfig.DialFunc = Dial
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return err
	}
	var opened []*pgxpool.Conn
	for range PoolSize {
		c, err := s.pool.Acquire(ctx)
		if err != nil {
			return err
		}
		opened = append(opened, c)
	}
	for _, c := range opened {
		c.Release()
	}
	return s.fillCache(ctx)
}

// Count parses the query parameter n by TechEmpower's rules: 1 to 500, and 1 for an invalid number.
func Count(n string) int {
	count, err := strconv.Atoi(n)
	if err != nil {
		return 1
	}
	return min(max(count, 1), 500)
}

// Compute uses the processor for 200 µs.
func Compute() string {
	for end := time.Now().Add(200 * time.Microsecond); time.Now().Before(end); {
	}
	return service.Greeting
}
