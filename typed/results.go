package typed

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/schema"
	"github.com/dunlinhttp/dunlin/internal/semantics"
	"github.com/dunlinhttp/dunlin/negotiate"
)

// None is the output of an action that answers 204 (No Content).
type None struct{}

func (None) result() (*result, error) {
	return &result{
		answers: []Answer{{Status: http.StatusNoContent}},
		respond: func(address, *negotiate.Format) dunlin.Response { return dunlin.NoContent() },
		receive: func(*received, address) error { return nil },
	}, nil
}

// Created is the output of an action that answers 201 (Created). Location is the URI of the created resource; if it is
// empty, the answer has no Location header. Bytes that a URI cannot contain are percent-encoded. A control character makes
// the answer a 500. A part of the URI that may contain a slash or a question mark must be escaped, see url.PathEscape.
type Created[T any] struct {
	Location string
	Body     T
}

func (Created[T]) result() (*result, error) {
	return located[T](http.StatusCreated, func(from address) (string, *T) {
		c := pointer[Created[T]](from)
		return c.Location, &c.Body
	}, func(to address, location string) *T {
		c := pointer[Created[T]](to)
		c.Location = location
		return &c.Body
	})
}

// Accepted is the output of an action that answers 202 (Accepted). Location is the URI of a resource that describes the
// progress; if it is empty, the answer has no Location header. Location is encoded as in Created.
type Accepted[T any] struct {
	Location string
	Body     T
}

func (Accepted[T]) result() (*result, error) {
	return located[T](http.StatusAccepted, func(from address) (string, *T) {
		a := pointer[Accepted[T]](from)
		return a.Location, &a.Body
	}, func(to address, location string) *T {
		a := pointer[Accepted[T]](to)
		a.Location = location
		return &a.Body
	})
}

// located returns the result for a value with a status and a Location. get returns the Location and the value of an
// output. set stores a Location in an output and returns the address of its value.
func located[T any](status int, get func(address) (string, *T), set func(address, string) *T) (*result, error) {
	inner, err := resultFor[T]()
	if err != nil {
		return nil, err
	}
	answers, err := inner.withStatus(status)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", reflect.TypeFor[T](), err)
	}
	answers[0].Headers = append([]AnswerHeader{{Name: "Location", Schema: Schema{stringNode("uri-reference")}}}, answers[0].Headers...)
	return &result{
		answers: answers,
		bodies:  inner.bodies,
		respond: func(from address, f *negotiate.Format) dunlin.Response {
			location, body := get(from)
			resp := inner.respond(hidden(body), f).Status(status)
			if location == "" {
				return resp
			}
			return resp.Header("Location", semantics.Reference(location))
		},
		receive: func(a *received, to address) error {
			body := set(to, a.header.Get("Location"))
			if inner.receive == nil {
				return errUnreadable
			}
			return inner.receive(a, addressOf(body))
		},
	}, nil
}

func stringNode(format string) *schema.Node {
	n, err := (&schema.Node{Kind: schema.String, Type: reflect.TypeFor[string]()}).Tagged(schema.Tags{"format": format})
	if err != nil {
		panic(err)
	}
	return n
}

var errUnreadable = errors.New("the response cannot be decoded into a value")

// Either is the output of an action that answers in one of two ways, such as with 200 or 201. A and B may also be Either
// types. The statuses of A and B must differ.
type Either[A, B any] struct {
	first  *A
	second *B
}

// First returns an Either with the first alternative, and Second returns an Either with the second alternative.
func First[A, B any](v A) Either[A, B]  { return Either[A, B]{first: &v} }
func Second[A, B any](v B) Either[A, B] { return Either[A, B]{second: &v} }

// Get returns both alternatives. The alternative that is not set is nil.
func (e Either[A, B]) Get() (*A, *B) { return e.first, e.second }

func (Either[A, B]) result() (*result, error) {
	a, err := resultFor[A]()
	if err != nil {
		return nil, err
	}
	b, err := resultFor[B]()
	if err != nil {
		return nil, err
	}
	for _, x := range a.answers {
		for _, y := range b.answers {
			if x.Status == y.Status {
				return nil, fmt.Errorf("%s: both outputs answer %d, so clients cannot distinguish them", reflect.TypeFor[Either[A, B]](), x.Status)
			}
		}
	}
	has := func(r *result, status int) bool {
		for _, x := range r.answers {
			if x.Status == status {
				return r.receive != nil
			}
		}
		return false
	}
	return &result{
		answers: slices.Concat(a.answers, b.answers),
		bodies:  slices.Concat(a.bodies, b.bodies),
		respond: func(from address, f *negotiate.Format) dunlin.Response {
			switch e := pointer[Either[A, B]](from); {
			case e.first != nil:
				return a.respond(addressOf(e.first), f)
			case e.second != nil:
				return b.respond(addressOf(e.second), f)
			}
			return dunlin.Error(errors.New("typed: the action returned an Either that is neither: use First or Second"))
		},
		receive: func(got *received, to address) error {
			e := pointer[Either[A, B]](to)
			switch {
			case has(a, got.status):
				e.first = new(A)
				return a.receive(got, addressOf(e.first))
			case has(b, got.status):
				e.second = new(B)
				return b.receive(got, addressOf(e.second))
			}
			return errUnreadable
		},
	}, nil
}
