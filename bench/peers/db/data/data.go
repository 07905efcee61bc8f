// Package data is the data layer of the peers that use a database: the tables of TechEmpower in PostgreSQL, read through
// one connection pool, and an upstream server that answers after a given time. Because all peers use it, they differ only
// in the framework.
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

// Dial opens the connections to the database and to the upstream server.
var Dial = new(net.Dialer).DialContext

// HTML is the media type of the page of fortunes.
const HTML = "text/html; charset=utf-8"

// A Source has the data of one peer. It is safe for concurrent use.
type Source struct {
	pool     *pgxpool.Pool
	cache    map[int32]World
	upstream upstream
}

// Listen parses the flags, listens as service.Listen does, and connects to the database and to the upstream server if their
// flags are set. It ends the program if it fails.
func Listen(peer string) (net.Listener, *Source) {
	connect := Flags(peer)
	return service.Listen(peer), connect()
}

// Flags defines the flags of the database and of the upstream server. After the flags were parsed, connect connects to the
// servers whose flags are set. connect ends the program if it fails.
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

// connect opens all connections of the pool and reads the rows that Cached returns.
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

// Count parses the query parameter n by TechEmpower's rules. The result is between 1 and 500, and is 1 if n is not a
// number.
func Count(n string) int {
	count, err := strconv.Atoi(n)
	if err != nil {
		return 1
	}
	return min(max(count, 1), 500)
}

// Compute uses a core for 200 µs.
func Compute() string {
	for end := time.Now().Add(200 * time.Microsecond); time.Now().Before(end); {
	}
	return service.Greeting
}
