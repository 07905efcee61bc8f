package typed

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"reflect"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/jsonwire"
	"github.com/dunlinhttp/dunlin/negotiate"
)

// Seq is the output of an action that answers 200 with a JSON array. The elements are produced one
// by one while the response is sent. If an error occurs before the first 8 KiB were written, it is
// answered as if the action had returned it. A later error closes the connection, so that the
// client receives an incomplete response.
//
// An action may also return an iter.Seq2[T, error]. It is slower, because its type is known only at
// run time.
type Seq[T any] iter.Seq2[T, error]

func (Seq[T]) result() (*result, error) {
	node, err := outputNode(reflect.TypeFor[[]T]())
	if err != nil {
		return nil, err
	}
	return &result{
		answers: []Answer{{Status: http.StatusOK, MediaType: mediaJSON, Schema: Schema{node}}},
		respond: func(from address, _ *negotiate.Format) dunlin.Response {
			seq := load[Seq[T]](from)
			if seq == nil {
				return dunlin.Bytes(mediaJSON, []byte("[]"))
			}
			return dunlin.Stream(mediaJSON, func(w io.Writer) error { return writeArray(w, iter.Seq2[T, error](seq)) })
		},
		receive: func(a *received, to address) error {
			var list []T
			if err := json.Unmarshal(a.body, &list); err != nil {
				return err
			}
			store(to, Seq[T](sliceSeq(list)))
			return nil
		},
	}, nil
}

// piece is the number of bytes of a sequence that are collected before they are written.
const piece = 4 << 10

// jsonOptions are the options for the JSON of answers. They have the effect of
// dunlin.JSONNilAsEmpty and dunlin.JSONOmitWriteOnly.
var jsonOptions = jsonwire.Options{NilAsEmpty: true, View: jsonwire.Answers}

func writeArray[T any](w io.Writer, seq iter.Seq2[T, error]) error {
	buf := append(make([]byte, 0, piece+1<<10), '[')
	n := 0
	for v, err := range seq {
		if err != nil {
			return err
		}
		if n > 0 {
			buf = append(buf, ',')
		}
		if buf, err = jsonwire.Append(buf, &v, jsonOptions); err != nil {
			return fmt.Errorf("element %d: %w", n, err)
		}
		if n++; len(buf) >= piece {
			if _, err = w.Write(buf); err != nil {
				return err
			}
			buf = buf[:0]
		}
	}
	_, err := w.Write(append(buf, ']'))
	return err
}

func sliceSeq[T any](list []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, v := range list {
			if !yield(v, nil) {
				return
			}
		}
	}
}

var errorType = reflect.TypeFor[error]()

// isSeq2 reports whether t is an iter.Seq2[T, error] for any type T.
func isSeq2(t reflect.Type) bool {
	if t.Kind() != reflect.Func || t.NumIn() != 1 || t.NumOut() != 0 || t.In(0).Kind() != reflect.Func {
		return false
	}
	yield := t.In(0)
	return yield.NumIn() == 2 && yield.NumOut() == 1 && yield.In(1) == errorType && yield.Out(0).Kind() == reflect.Bool
}

// reflectedSeq returns the result for an output of type iter.Seq2[T, error].
func reflectedSeq(t reflect.Type) (*result, error) {
	element := t.In(0).In(0)
	node, err := outputNode(reflect.SliceOf(element))
	if err != nil {
		return nil, err
	}
	return &result{
		answers: []Answer{{Status: http.StatusOK, MediaType: mediaJSON, Schema: Schema{node}}},
		respond: func(from address, _ *negotiate.Format) dunlin.Response {
			seq := from.value(t)
			if seq.IsNil() {
				return dunlin.Bytes(mediaJSON, []byte("[]"))
			}
			moved := reflect.New(t).Elem() // the address is no longer valid when the response is sent
			moved.Set(seq)
			return dunlin.Stream(mediaJSON, func(w io.Writer) error {
				return writeArray(w, func(yield func(any, error) bool) {
					for v, e := range moved.Seq2() {
						err, _ := e.Interface().(error)
						if !yield(v.Interface(), err) {
							return
						}
					}
				})
			})
		},
		receive: func(a *received, to address) error {
			list := reflect.New(reflect.SliceOf(element))
			if err := json.Unmarshal(a.body, list.Interface()); err != nil {
				return err
			}
			to.value(t).Set(reflect.MakeFunc(t, func(args []reflect.Value) []reflect.Value {
				for i := range list.Elem().Len() {
					if !args[0].Call([]reflect.Value{list.Elem().Index(i), reflect.Zero(errorType)})[0].Bool() {
						break
					}
				}
				return nil
			}))
			return nil
		},
	}, nil
}

// Lines is the output of an action that answers 200 with JSON Lines: one JSON text on each line.
// Each line is sent when it is produced. The response begins with the first line: an error before
// the first line is answered as if the action had returned it. A later error closes the connection.
type Lines[T any] iter.Seq2[T, error]

const mediaLines = "application/jsonl"

func (Lines[T]) result() (*result, error) {
	node, err := outputNode(reflect.TypeFor[T]())
	if err != nil {
		return nil, err
	}
	return &result{
		answers: []Answer{{Status: http.StatusOK, MediaType: mediaLines, Item: Schema{node}}},
		respond: func(from address, _ *negotiate.Format) dunlin.Response {
			seq := load[Lines[T]](from)
			if seq == nil {
				return dunlin.Bytes(mediaLines, nil)
			}
			return dunlin.Stream(mediaLines, func(w io.Writer) error { return writeLines(w, iter.Seq2[T, error](seq)) })
		},
		receive: func(a *received, to address) error {
			list, err := readLines[T](a.body)
			store(to, Lines[T](sliceSeq(list)))
			return err
		},
	}, nil
}

func writeLines[T any](w io.Writer, seq iter.Seq2[T, error]) error {
	var buf []byte
	n := 0
	for v, err := range seq {
		if err != nil {
			return err
		}
		if buf, err = jsonwire.Append(buf[:0], &v, jsonOptions); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		n++
		if _, err = w.Write(append(buf, '\n')); err == nil {
			err = dunlin.Flush(w)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func readLines[T any](body []byte) (list []T, err error) {
	d := json.NewDecoder(bytesReader(body))
	for d.More() {
		var v T
		if err := d.Decode(&v); err != nil {
			return list, err
		}
		list = append(list, v)
	}
	return list, nil
}

// EventsOf is the output of an action that answers 200 with an event stream. The data of the events
// is the JSON of values of type T. The stream ends when the function returns, see [dunlin.SSE].
type EventsOf[T any] func(*Emitter[T]) error

// An Emitter sends the events of an EventsOf.
type Emitter[T any] struct{ *dunlin.Events }

// Emit sends the JSON of v as the data of an event that has neither a type nor an ID.
func (e *Emitter[T]) Emit(v T) error { return e.EmitAs(dunlin.Event{}, v) }

// EmitAs sends the event ev with the JSON of v as its data.
func (e *Emitter[T]) EmitAs(ev dunlin.Event, v T) error {
	b, err := jsonwire.Append(nil, &v, jsonOptions)
	if err != nil {
		return fmt.Errorf("event: %w", err)
	}
	ev.Data = view(b)
	return e.Send(ev)
}

const mediaEvents = "text/event-stream"

func (EventsOf[T]) result() (*result, error) {
	node, err := outputNode(reflect.TypeFor[T]())
	if err != nil {
		return nil, err
	}
	return &result{
		answers: []Answer{{Status: http.StatusOK, MediaType: mediaEvents, Item: Schema{node}}},
		respond: func(from address, _ *negotiate.Format) dunlin.Response {
			run := load[EventsOf[T]](from)
			if run == nil {
				return dunlin.Error(errNoEvents)
			}
			return dunlin.SSE(func(e *dunlin.Events) error { return run(&Emitter[T]{e}) })
		},
	}, nil
}

var errNoEvents = fmt.Errorf("typed: the action returned a nil EventsOf")
