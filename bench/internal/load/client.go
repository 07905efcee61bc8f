package load

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net"
	"time"
)

// dialTimeout is longer than any connection setup on the same machine takes.
const dialTimeout = 5 * time.Second

// A client sends the same request repeatedly on one connection. To leave CPU time to the server, it
// examines no more of a response than it needs to find the end.
type client struct {
	addr    string
	request []byte
	byTLS   bool
	conn    net.Conn
	in      *bufio.Reader
}

func requestFor(addr, path string) []byte {
	return fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, addr)
}

func (c *client) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// do sends the request and returns the status of the response. After an error the connection cannot be used again.
func (c *client) do(deadline time.Time) (int, error) {
	if c.conn == nil {
		conn, err := net.DialTimeout("tcp", c.addr, min(dialTimeout, time.Until(deadline)))
		if err != nil {
			return 0, err
		}
		if c.byTLS {
			conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
		}
		c.conn = conn
		if c.in == nil {
			c.in = bufio.NewReaderSize(nil, 16<<10)
		}
		c.in.Reset(conn)
	}
	if err := c.conn.SetDeadline(deadline); err != nil {
		return 0, err
	}
	if _, err := c.conn.Write(c.request); err != nil {
		return 0, err
	}
	status, keep, err := readAnswer(c.in)
	if err == nil && !keep {
		c.close()
	}
	return status, err
}

// readAnswer reads a whole response and reports whether the connection can be used again.
func readAnswer(in *bufio.Reader) (status int, keep bool, err error) {
	var a answer
	for want := 1; ; {
		if _, err := in.Peek(want); err != nil {
			return 0, false, err
		}
		b, _ := in.Peek(in.Buffered())
		used, err := a.feed(b)
		if err != nil {
			return 0, false, err
		}
		_, _ = in.Discard(used)
		if a.done() {
			return a.status, !a.close, nil
		}
		want = len(b) - used + 1
	}
}
