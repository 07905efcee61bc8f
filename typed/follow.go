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

// A Streamed output is one whose elements are of type T.
type Streamed[T any] interface {
	Seq[T] | Lines[T] | EventsOf[T]
}

// Follow calls an operation whose output is a stream, and yields its elements as they
// arrive: of an event stream the data of the events. It ends when the stream ends, the
// context is done, or with an error: a *Problem, or what was wrong with the stream, which
// may have been cut. It does not connect again.
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
				yield(none, fmt.Errorf("typed: element %d of the answer of %s %s: %w", n, e.method, resp.Request.URL.Redacted(), err))
				return
			}
			if !yield(v, nil) {
				return
			}
		}
	}
}

// expectStream returns what stands in the way of reading an answer as a stream.
func expectStream(c *Client, r *result, resp *http.Response) error {
	kind := mediaType(resp.Header.Get("Content-Type"))
	if want := r.answers[0]; resp.StatusCode == want.Status && kind == want.MediaType {
		return nil
	}
	if resp.StatusCode < 400 {
		return fmt.Errorf("typed: the answer is %d %s, and not the stream of the operation", resp.StatusCode, kind)
	}
	a, err := c.receive(resp)
	if err != nil {
		return err
	}
	return newProblem(a)
}

// elements is what the elements of a stream are read from, by one or the other.
type elements struct {
	decoder *json.Decoder
	lines   *bufio.Reader
}

var errLargeElement = errors.New("it is longer than Client.Most")

// An elementReader bounds what is read for one element.
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

// nextLine reads a JSON text of JSON Lines; io.EOF behind the last.
func nextLine(from *elements, v any, _ int) error { return from.decoder.Decode(v) }

// nextOfArray reads the element of an array at index n; io.EOF behind its end.
func nextOfArray(from *elements, v any, n int) error {
	d := from.decoder
	if n == 0 {
		if t, err := d.Token(); err != nil || t != json.Delim('[') {
			return errors.Join(errors.New("it is no array"), notEnd(err))
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

// notEnd makes the end of what was read too early an error of its own.
func notEnd(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// eventReader returns a function that reads the data of the next event with data (HTML,
// section 9.2.6); io.EOF behind the last.
func eventReader() func(from *elements, v any, n int) error {
	var data []byte
	return func(from *elements, v any, _ int) error {
		data = data[:0]
		for has := false; ; {
			line, err := from.lines.ReadBytes('\n')
			if err != nil {
				return err // an event that was not ended does not count
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
