package load

import (
	"bytes"
	"errors"
	"strconv"
)

var errAnswer = errors.New("not an HTTP/1.1 answer")

// An answer parses an HTTP/1.1 response incrementally. It examines no more than it needs to find the end of the response. The
// zero value is ready for a response.
type answer struct {
	status int
	close  bool  // the server will close the connection
	left   int64 // number of bytes that remain to be skipped
	part   part
}

// part is the part of the response that follows the bytes to skip.
type part uint8

const (
	partHead  part = iota
	partChunk      // the line with the size of a chunk
	partNone
)

// done reports whether the response is complete.
func (a *answer) done() bool { return a.part == partNone && a.left == 0 }

// feed parses b and returns the number of bytes that it used. If the response is incomplete, the remaining bytes are an
// incomplete line or head. The caller must pass them again, followed by more bytes.
func (a *answer) feed(b []byte) (used int, err error) {
	for {
		n := int(min(a.left, int64(len(b)-used)))
		used += n
		if a.left -= int64(n); a.left > 0 || a.part == partNone {
			return used, nil
		}
		if a.part == partHead {
			n, err = a.feedHead(b[used:])
		} else {
			n, err = a.feedChunk(b[used:])
		}
		if n == 0 || err != nil {
			return used, err
		}
		used += n
	}
}

// feedHead parses the head. It returns 0 if the head is incomplete.
func (a *answer) feedHead(b []byte) (used int, err error) {
	end := bytes.Index(b, []byte("\r\n\r\n"))
	if end < 0 {
		return 0, nil
	}
	line, headers, _ := bytes.Cut(b[:end], []byte("\r\n"))
	if len(line) < len("HTTP/1.1 200") || !bytes.HasPrefix(line, []byte("HTTP/1.1 ")) {
		return 0, errAnswer
	}
	if a.status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return 0, errAnswer
	}
	a.part = partNone
	for len(headers) > 0 {
		line, headers, _ = bytes.Cut(headers, []byte("\r\n"))
		if err := a.header(line); err != nil {
			return 0, err
		}
	}
	return end + len("\r\n\r\n"), nil
}

// header evaluates the header fields that determine where the response ends: Content-Length, Transfer-Encoding and Connection.
func (a *answer) header(line []byte) (err error) {
	colon := bytes.IndexByte(line, ':')
	if colon < 0 {
		return errAnswer
	}
	name, value := line[:colon], bytes.TrimSpace(line[colon+1:])
	switch {
	case len(name) == len("Content-Length") && bytes.EqualFold(name, []byte("Content-Length")):
		if a.left, err = strconv.ParseInt(string(value), 10, 64); err != nil || a.left < 0 {
			return errAnswer
		}
	case len(name) == len("Transfer-Encoding") && bytes.EqualFold(name, []byte("Transfer-Encoding")):
		a.part = partChunk
	case len(name) == len("Connection") && bytes.EqualFold(name, []byte("Connection")):
		a.close = bytes.EqualFold(value, []byte("close"))
	}
	return nil
}

// feedChunk parses the line before a chunk. It returns 0 if the line is incomplete. Trailers are not supported, because the
// requests do not ask for them.
func (a *answer) feedChunk(b []byte) (used int, err error) {
	end := bytes.IndexByte(b, '\n')
	if end < 0 {
		return 0, nil
	}
	size, err := strconv.ParseInt(string(bytes.TrimSpace(b[:end])), 16, 64)
	if err != nil || size < 0 {
		return 0, errAnswer
	}
	if size == 0 {
		a.part = partNone
	}
	a.left = size + int64(len("\r\n"))
	return end + 1, nil
}
