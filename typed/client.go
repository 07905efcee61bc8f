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

// An Endpoint is an operation as clients call it: a method, a pattern, and the types of the server's [Op]. It is
// safe for concurrent use.
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

// NewEndpoint returns an endpoint for an operation of any server. Like registration it panics if the types do not
// match the pattern.
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

// Endpoint returns an endpoint for the operation. If the operation has several methods, the endpoint uses the
// first.
func (op *Op[In, Out]) Endpoint() *Endpoint[In, Out] {
	info := op.route.Info()
	method, _, _ := strings.Cut(info.Methods, ",")
	return &Endpoint[In, Out]{method: strings.TrimSpace(method), pattern: info.Pattern, host: info.Host, params: info.Params, plan: op.plan, result: op.result}
}

// A Client has the address of a server and the settings for calls. Any number of goroutines may use it if nothing
// changes it.
type Client struct {
	Base string              // base URL: "https://example.com/api"
	HTTP *http.Client        // nil uses http.DefaultClient
	Edit func(*http.Request) // changes each request before it is sent, for example to add credentials; may be nil
	Most int64               // maximum size of a response, or of one element of a stream, in bytes; 0 is 64 MiB
}

const maxAnswer = 64 << 20

// Call sends an input and returns the decoded response. If the response is a problem, Call returns a *Problem as
// the error; errors.Is compares it with faults. If the output is a sequence, Call reads it completely; [Follow]
// reads the elements one by one. Call returns an error for operations that answer with an event stream or a raw
// response.
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
	return out, e.result.read(a, addressOf(&out))
}

// send sends an input and returns the response. The caller must close its body.
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

// receive reads the whole response.
func (c *Client) receive(resp *http.Response) (*received, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, c.most()+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("typed: response of %s %s: %w", resp.Request.Method, resp.Request.URL.Redacted(), err)
	case int64(len(body)) > c.most():
		return nil, fmt.Errorf("typed: response of %s %s is longer than %d bytes", resp.Request.Method, resp.Request.URL.Redacted(), c.most())
	}
	return &received{resp.StatusCode, resp.Header, body}, nil
}

func (c *Client) most() int64 {
	if c.Most <= 0 {
		return maxAnswer
	}
	return c.Most
}

// read decodes a response into the output at an address. If the response is a problem, read returns it as a
// *Problem.
func (r *result) read(a *received, to address) error {
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
	return fmt.Errorf("typed: response has status %d, which the operation does not declare", a.status)
}

// A Problem is an error response that a client has received (RFC 9457).
type Problem struct {
	Status  int                        `json:"status"`
	Type    string                     `json:"type"`
	Title   string                     `json:"title"`
	Detail  string                     `json:"detail"`
	Errors  []Violation                `json:"errors"`
	Members map[string]json.RawMessage `json:"-"` // all members
	Header  http.Header                `json:"-"`
}

func newProblem(a *received) *Problem {
	p := &Problem{Header: a.header}
	_ = json.Unmarshal(a.body, p) // if the body is not a problem, only the status is set
	_ = json.Unmarshal(a.body, &p.Members)
	p.Status = a.status
	if id := linkedType(a.header); id != "" && mediaType(a.header.Get("Content-Type")) != "application/problem+json" {
		p.Type = id
	}
	if p.Title == "" {
		p.Title = http.StatusText(a.status)
	}
	return p
}

// linkedType returns the target of the Link with rel="type", which a server with dunlin.Config.Problems sends. It
// returns "" if there is no such Link. A proxy may have joined several fields with commas.
func linkedType(h http.Header) string {
	rest := strings.Join(h.Values("Link"), ", ")
	for {
		_, after, found := strings.Cut(rest, "<")
		if !found {
			return ""
		}
		var target string
		if target, rest, found = strings.Cut(after, ">"); found && strings.HasPrefix(rest, `; rel="type"`) {
			return target
		}
	}
}

// Error returns the status, the title and the detail of the response.
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

// StatusCode returns the status of the response.
func (p *Problem) StatusCode() int { return p.Status }

// Is reports whether target is a fault with the same status and type as the problem.
func (p *Problem) Is(target error) bool {
	f, ok := errors.AsType[*Fault](target)
	return ok && p != nil && f.Status() == p.Status && f.ID() == p.Type
}
