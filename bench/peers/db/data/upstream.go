package data

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"time"
)

// upstreamConnections is the number of connections to the upstream server: as many as clients, so that no request waits
// for one.
const upstreamConnections = 64

// upstream is a pool of connections to a server that answers four bytes with the same four bytes, after the number of
// microseconds that they encode. Waiting for it is like waiting for a database: a goroutine is parked until a socket is
// readable. A timer would be different, because the runtime rounds it up to 1 ms on an idle process.
type upstream chan net.Conn

func newUpstream(addr string) upstream {
	u := make(upstream, upstreamConnections)
	for range cap(u) {
		if addr == "" {
			break
		}
		c, err := Dial(context.Background(), "tcp", addr)
		if err != nil {
			fmt.Fprintf(os.Stderr, "upstream: %v\n", err)
			os.Exit(1)
		}
		u <- c
	}
	return u
}

// Wait waits for the upstream server for the microseconds of a query parameter, and reports how long that was meant
// to be. At 0 it does not ask it.
func (s *Source) Wait(us string) (string, error) {
	n, err := strconv.ParseUint(us, 10, 32)
	if err != nil {
		return "", err
	}
	if n > 0 {
		if err := s.upstream.wait(uint32(n)); err != nil {
			return "", err
		}
	}
	return (time.Duration(n) * time.Microsecond).String(), nil
}

func (u upstream) wait(us uint32) error {
	c := <-u
	defer func() { u <- c }()
	var word [4]byte
	binary.BigEndian.PutUint32(word[:], us)
	if _, err := c.Write(word[:]); err != nil {
		return err
	}
	_, err := io.ReadFull(c, word[:])
	return err
}
