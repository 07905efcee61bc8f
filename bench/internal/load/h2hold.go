//go:build linux

package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// H2Hold opens streams whose requests are not answered, on connections in clear text.
type H2Hold struct {
	Addr, Path           string
	Connections, Streams int // Streams is the number for each connection
}

// H2Held has the connections of streams that wait for responses.
type H2Held struct{ conns []net.Conn }

// Open opens all streams.
func (h H2Hold) Open(ctx context.Context) (*H2Held, error) {
	held := &H2Held{}
	var out []byte
	for i := range h.Streams {
		out = h2Frame(out, h2Headers, h2EndStream|h2EndHeaders, uint32(2*i+1), h2Block("GET", h.Path))
	}
	for n := range h.Connections {
		conn, err := dialH2(h.Addr, "")
		if conn != nil {
			held.conns = append(held.conns, conn)
			if err == nil {
				_, err = conn.Write(out)
			}
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			held.Close()
			return nil, fmt.Errorf("connection %d of %d: %w", n+1, h.Connections, err)
		}
	}
	return held, nil
}

// Answered returns the number of streams that were answered or reset since its last call. It returns an error if the server
// has closed a connection.
func (h *H2Held) Answered() (n int, err error) {
	in := make([]byte, 64<<10)
	for _, conn := range h.conns {
		if err := conn.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
			return n, err
		}
		read, err := conn.Read(in)
		n += h2Answers(in[:read])
		var late net.Error
		if err != nil && (!errors.As(err, &late) || !late.Timeout()) {
			return n, fmt.Errorf("a connection has ended: %w", err)
		}
	}
	return n, nil
}

// Close closes all connections.
func (h *H2Held) Close() {
	for _, conn := range h.conns {
		conn.Close()
	}
}
