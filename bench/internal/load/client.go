package load

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// dialTimeout is longer than any connect on one machine takes.
const dialTimeout = 5 * time.Second

// client sends the same request over and over on one connection, and reads no more of the answer
// than it must to find its end. That leaves the processor to the server.
type client struct {
	addr    string
	request []byte
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

// do returns the answer's status. After an error the connection is in no state to be used.
func (c *client) do(deadline time.Time) (int, error) {
	if c.conn == nil {
		conn, err := net.DialTimeout("tcp", c.addr, min(dialTimeout, time.Until(deadline)))
		if err != nil {
			return 0, err
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
	answer, err := readHead(c.in)
	if err != nil {
		return 0, err
	}
	if err := answer.skipBody(c.in); err != nil {
		return 0, err
	}
	if answer.close {
		c.close()
	}
	return answer.status, nil
}

type answerHead struct {
	status  int
	length  int64 // -1: chunked
	close   bool
	hasBody bool
}

var errAnswer = errors.New("not an HTTP/1.1 answer")

// readHead reads a status line and the three headers that say where the answer ends.
func readHead(in *bufio.Reader) (answerHead, error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return answerHead{}, err
	}
	if len(line) < len("HTTP/1.1 200") || !bytes.HasPrefix(line, []byte("HTTP/1.1 ")) {
		return answerHead{}, errAnswer
	}
	head := answerHead{}
	if head.status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return answerHead{}, errAnswer
	}
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return answerHead{}, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			return head, nil
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			head.hasBody = true
			if head.length, err = strconv.ParseInt(string(value), 10, 64); err != nil || head.length < 0 {
				return answerHead{}, errAnswer
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			head.hasBody, head.length = true, -1
		case bytes.EqualFold(name, []byte("Connection")):
			head.close = bytes.EqualFold(value, []byte("close"))
		}
	}
}

func (h answerHead) skipBody(in *bufio.Reader) error {
	switch {
	case !h.hasBody:
		return nil
	case h.length >= 0:
		return skip(in, h.length)
	}
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		size, err := strconv.ParseInt(string(bytes.TrimSpace(line)), 16, 64)
		if err != nil || size < 0 {
			return errAnswer
		}
		if err := skip(in, size+int64(len("\r\n"))); err != nil || size == 0 {
			return err
		}
	}
}

func skip(in *bufio.Reader, n int64) error {
	_, err := io.CopyN(io.Discard, in, n)
	return err
}
