//go:build linux

package load

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// Hold opens connections and leaves them open.
type Hold struct {
	Addr, Path  string
	Connections int
	// Unread is the number of requests that each connection writes at once. The client never reads their responses. If Unread
	// is 0, each connection sends one request, reads the response and then is idle.
	Unread int
	TLS    bool // each connection begins with a TLS handshake
	Hello  bool // each connection sends only the first half of a ClientHello
}

// Held is a set of open connections.
type Held struct {
	conns []net.Conn
}

// Open opens all connections. It returns an error if the server refuses some of them. If the server closes connections of
// clients that do not read, Open does not notice; CutOff counts these connections.
func (h Hold) Open(ctx context.Context) (*Held, error) {
	held := &Held{}
	request := requestFor(h.Addr, h.Path)
	for n := range h.Connections {
		if err := ctx.Err(); err != nil {
			held.Close()
			return nil, err
		}
		c := client{addr: h.Addr, request: request, byTLS: h.TLS}
		var err error
		if h.Hello {
			c.request = halfHello
			err = c.writeOnly(1)
		} else if h.Unread > 0 {
			if err = c.writeOnly(h.Unread); c.conn != nil {
				err = nil
			}
		} else {
			_, err = c.do(time.Now().Add(dialTimeout))
		}
		if c.conn != nil {
			held.conns = append(held.conns, c.conn)
		}
		if err != nil {
			held.Close()
			return nil, fmt.Errorf("connection %d of %d: %w", n+1, h.Connections, err)
		}
	}
	return held, nil
}

// halfHello is the first half of a ClientHello that has 512 bytes.
var halfHello = append([]byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), make([]byte, 256)...)

func (c *client) writeOnly(requests int) error {
	conn, err := net.DialTimeout("tcp", c.addr, dialTimeout)
	if err != nil {
		return err
	}
	c.conn = conn
	if err := conn.SetWriteDeadline(time.Now().Add(dialTimeout)); err != nil {
		return err
	}
	_, err = conn.Write(bytes.Repeat(c.request, requests))
	return err
}

// CutOff returns the number of connections that the server has closed since Open.
func (h *Held) CutOff() (int, error) {
	cut := 0
	for _, conn := range h.conns {
		if by, ok := conn.(*tls.Conn); ok {
			conn = by.NetConn()
		}
		raw, err := conn.(*net.TCPConn).SyscallConn()
		if err != nil {
			return 0, fmt.Errorf("look at a connection: %w", err)
		}
		err = raw.Control(func(fd uintptr) {
			// A read would not detect the end of the stream, because unread responses may precede it.
			poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
			unix.Poll(poll, 0)
			if poll[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0 {
				cut++
			}
		})
		if err != nil {
			return 0, fmt.Errorf("look at a connection: %w", err)
		}
	}
	return cut, nil
}

// Close closes all connections.
func (h *Held) Close() {
	for _, conn := range h.conns {
		conn.Close()
	}
}
