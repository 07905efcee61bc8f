package typed

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
)

// A Streamed type is the output of an operation that answers with a stream of elements of type T.
type Streamed[T any] interface {
	Seq[T] | Lines[T] | EventsOf[T]
}

// Follow calls an operation whose output is a stream, and yields the elements as they arrive. The
// elements of an event stream are the data of its events. The sequence ends when the stream ends or
// ctx is done. If an error occurs, it is yielded last: a *Problem, or an error of the stream, for
// example because the stream is incomplete. Follow does not reconnect.
//
//	for notice, err := range typed.Follow[Notice](ctx, client, watchStock, struct{}{}) {
func Follow[T, In any, Out Streamed[T]](ctx context.Context, c *Client, e *Endpoint[In, Out], in In) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		resp, err := e.send(ctx, c, in)
		if err != nil {
			yield(none, err)
			return
		}
		defer resp.Body.Close()
		if err := expectStream(c, e.result, resp); err != nil {
			yield(none, err)
			return
		}
		body := &elementReader{from: resp.Body, most: c.most()}
		next := nextLine
		switch e.result.answers[0].MediaType {
		case mediaJSON:
			next = nextOfArray
		case mediaEvents:
			next = eventReader()
		}
		d := &elements{decoder: json.NewDecoder(body), lines: bufio.NewReader(body)}
		for n := 0; ; n++ {
			var v T
			body.left = body.most
			err := next(d, &v, n)
			if err == io.EOF {
				return
			}
			if err != nil {
				yield(none, fmt.Errorf("typed: element %d of the response of %s %s: %w", n, e.method, resp.Request.URL.Redacted(), err))
				return
			}
			if !yield(v, nil) {
				return
			}
		}
	}
}

// expectStream returns an error if the response is not the stream that the operation declares.
func expectStream(c *Client, r *result, resp *http.Response) error {
	kind := mediaType(resp.Header.Get("Content-Type"))
	if want := r.answers[0]; resp.StatusCode == want.Status && kind == want.MediaType {
		return nil
	}
	if resp.StatusCode < 400 {
		return fmt.Errorf("typed: got a response with status %d and type %s, want the stream of the operation", resp.StatusCode, kind)
	}
	a, err := c.receive(resp)
	if err != nil {
		return err
	}
	return newProblem(a)
}

// elements has the readers of a stream. Each format uses one of the readers.
type elements struct {
	decoder *json.Decoder
	lines   *bufio.Reader
}

var errLargeElement = errors.New("element is longer than Client.Most")

// An elementReader limits the number of bytes that are read for one element.
type elementReader struct {
	from       io.Reader
	left, most int64
}

func (r *elementReader) Read(b []byte) (int, error) {
	if r.left <= 0 {
		return 0, errLargeElement
	}
	n, err := r.from.Read(b[:min(int64(len(b)), r.left)])
	r.left -= int64(n)
	return n, err
}

// nextLine reads the next JSON text of JSON Lines. It returns io.EOF after the last text.
func nextLine(from *elements, v any, _ int) error { return from.decoder.Decode(v) }

// nextOfArray reads the element with index n of an array. It returns io.EOF at the end of the
// array.
func nextOfArray(from *elements, v any, n int) error {
	d := from.decoder
	if n == 0 {
		if t, err := d.Token(); err != nil || t != json.Delim('[') {
			return errors.Join(errors.New("response is not a JSON array"), notEnd(err))
		}
	}
	if d.More() {
		return notEnd(d.Decode(v))
	}
	if _, err := d.Token(); err != nil {
		return notEnd(err)
	}
	return io.EOF
}

// notEnd returns err, or io.ErrUnexpectedEOF if err is io.EOF.
func notEnd(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// eventReader returns a function that reads the data of the next event that has data (HTML, section
// 9.2.6). The function returns io.EOF after the last event.
func eventReader() func(from *elements, v any, n int) error {
	var data []byte
	return func(from *elements, v any, _ int) error {
		data = data[:0]
		for has := false; ; {
			line, err := from.lines.ReadBytes('\n')
			if err != nil {
				return err // an incomplete event is ignored
			}
			line = bytes.TrimRight(line, "\r\n")
			if len(line) == 0 && has {
				return json.Unmarshal(data, v)
			}
			if text, ok := bytes.CutPrefix(line, []byte("data:")); ok {
				if has {
					data = append(data, '\n')
				}
				data, has = append(data, bytes.TrimPrefix(text, []byte(" "))...), true
			}
		}
	}
}
