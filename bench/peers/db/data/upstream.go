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

// upstreamConnections is the number of connections to the upstream server. It equals the number of clients, so that no
// request waits for a connection.
const upstreamConnections = 64

// upstream is a pool of connections to a server that answers four bytes with the same four bytes. The bytes are a
// number of microseconds, after which the server answers. Waiting for this server is like waiting for a database: a
// goroutine waits until a socket is readable. A timer would be different, because in an idle process the runtime rounds
// it up to 1 ms.
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

// Wait waits until the upstream server answers. us is the number of microseconds, from a query parameter. Wait returns
// this time as text. If it is 0, Wait does not use the upstream server.
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
