package typed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/router"
)

// An Endpoint is an operation as its clients know it: a method, a pattern and the types
// that it shares with the server. It is safe for any number of goroutines.
//
//	var createUser = typed.NewEndpoint[CreateUser, typed.Created[User]]("POST", "/orgs/{org}/users")
//
//	user, err := createUser.Call(ctx, client, CreateUser{Org: "acme"})
type Endpoint[In, Out any] struct {
	method, pattern, host string
	params                []router.Param
	plan                  *plan
	result                *result
}

// NewEndpoint returns an operation of some server. Like registration it panics when
// the types do not fit the pattern.
func NewEndpoint[In, Out any](method, pattern string) *Endpoint[In, Out] {
	app := dunlin.New(dunlin.Config{})
	route := app.Handle(method, pattern, func(*dunlin.Request) dunlin.Response { return dunlin.NotFound() })
	e := &Endpoint[In, Out]{method: method, pattern: pattern, params: route.Info().Params}
	var err error
	if e.plan, err = newPlan(reflect.TypeFor[In](), method, ignores{}); err == nil {
		err = e.plan.matchPath(e.params)
	}
	if err == nil {
		e.result, err = resultFor[Out]()
	}
	if err != nil {
		panic(fmt.Sprintf("typed: NewEndpoint(%q, %q): %v", method, pattern, err))
	}
	return e
}

// Endpoint returns the operation as its clients know it, for the first of its methods.
func (op *Op[In, Out]) Endpoint() *Endpoint[In, Out] {
	info := op.route.Info()
	method, _, _ := strings.Cut(info.Methods, ",")
	return &Endpoint[In, Out]{method: strings.TrimSpace(method), pattern: info.Pattern, host: info.Host, params: info.Params, plan: op.plan, result: op.result}
}

// A Client says how a server is reached.
type Client struct {
	Base string              // where it is: "https://example.com/api"
	HTTP *http.Client        // nil: http.DefaultClient
	Edit func(*http.Request) // looks at each request before it is sent, to add credentials; nil for nothing
	Most int64               // bytes that an answer, or one element of a stream, may have; 0 is 64 MB
}

const mostAnswer = 64 << 20

// Call sends an input and returns what came back. An answer that is a problem is an
// error, a *Problem, which errors.Is compares with faults. Sequences are read in whole,
// see [Follow]; event streams and raw responses cannot be called.
func (e *Endpoint[In, Out]) Call(ctx context.Context, c *Client, in In) (Out, error) {
	var out Out
	resp, err := e.send(ctx, c, in)
	if err != nil {
		return out, err
	}
	defer resp.Body.Close()
	a, err := c.receive(resp)
	if err != nil {
		return out, err
	}
	return out, e.result.read(a, placeOf(&out))
}

// send sends an input and returns the answer, whose body the caller closes.
func (e *Endpoint[In, Out]) send(ctx context.Context, c *Client, in In) (*http.Response, error) {
	m, err := e.plan.encode(reflect.ValueOf(in), e.host, e.pattern, e.params)
	if err != nil {
		return nil, fmt.Errorf("typed: %s %s: %w", e.method, e.pattern, err)
	}
	r, err := m.request(e.method, c.Base)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json, application/problem+json, */*;q=0.1")
	if c.Edit != nil {
		c.Edit(r)
	}
	client := c.HTTP
	if client == nil {
		client = http.DefaultClient
	}
	return client.Do(r.WithContext(ctx))
}

// receive reads an answer in whole.
func (c *Client) receive(resp *http.Response) (*received, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, c.most()+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("typed: the answer of %s %s: %w", resp.Request.Method, resp.Request.URL.Redacted(), err)
	case int64(len(body)) > c.most():
		return nil, fmt.Errorf("typed: the answer of %s %s is longer than %d bytes", resp.Request.Method, resp.Request.URL.Redacted(), c.most())
	}
	return &received{resp.StatusCode, resp.Header, body}, nil
}

func (c *Client) most() int64 {
	if c.Most <= 0 {
		return mostAnswer
	}
	return c.Most
}

// read reads an answer into the output, or returns it as the problem that it is.
func (r *result) read(a *received, to place) error {
	if a.status >= 400 || mediaType(a.header.Get("Content-Type")) == "application/problem+json" {
		return newProblem(a)
	}
	if r.receive == nil {
		return errUnreadable
	}
	for _, want := range r.answers {
		if want.Status == a.status {
			return r.receive(a, to)
		}
	}
	return fmt.Errorf("typed: the answer has the status %d, which the operation does not have", a.status)
}

// A Problem is an error of a server, as its clients see it (RFC 9457).
type Problem struct {
	Status  int                        `json:"status"`
	Type    string                     `json:"type"`
	Title   string                     `json:"title"`
	Detail  string                     `json:"detail"`
	Errors  []Violation                `json:"errors"`
	Members map[string]json.RawMessage `json:"-"` // all of them
	Header  http.Header                `json:"-"`
}

func newProblem(a *received) *Problem {
	p := &Problem{Header: a.header}
	_ = json.Unmarshal(a.body, p) // what is no problem is one with a status alone
	_ = json.Unmarshal(a.body, &p.Members)
	p.Status = a.status
	if p.Title == "" {
		p.Title = http.StatusText(a.status)
	}
	return p
}

// Error says what the server said.
func (p *Problem) Error() string {
	s := fmt.Sprintf("%d %s", p.Status, p.Title)
	if p.Detail != "" {
		s += ": " + p.Detail
	}
	for i := range p.Errors {
		v := &p.Errors[i]
		s += "; " + strings.Join(strings.Fields(v.In+" "+v.Name+" "+v.Pointer+" "+v.Text()), " ")
	}
	return s
}

// StatusCode returns the status.
func (p *Problem) StatusCode() int { return p.Status }

// Is reports whether the problem is the fault target.
func (p *Problem) Is(target error) bool {
	f, ok := errors.AsType[*Fault](target)
	return ok && p != nil && f.Status() == p.Status && f.ID() == p.Type
}
