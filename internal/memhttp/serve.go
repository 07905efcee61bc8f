// Package memhttp is the adapter without a network: it answers a request of net/http by the
// pipeline of an app, for tests. It is the smallest adapter, and the one to read first. Each request
// has a wire and a goroutine, its answer a pipe. Nothing is counted, bounded or can be hijacked.
package memhttp

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// Serve answers a request as a server of net/http would have it, which is Serve's from here on.
// It returns when the head of the answer is there; whoever gets the body has to close it.
func Serve(s *exchange.Server, req *http.Request) (*http.Response, error) {
	path, err := exchange.AppendCanonical(nil, req.URL.EscapedPath())
	if err != nil {
		return nil, err
	}
	if len(path) == 0 && req.Method != http.MethodConnect {
		path = []byte("/") // RFC 9110 section 4.2.3
	}
	x := newWire(s, req, make(chan *http.Response, 1))
	x.s.Set(req.Method, string(path), req.URL.RawQuery, false)
	if !x.call.Find(req.Host) {
		x.call.FindCarefully(req.Host)
	}
	go x.run(x.s.Route)
	select {
	case resp := <-x.answer:
		switch err := req.Context().Err(); {
		case err != nil && resp != nil: // the client has gone, which may be what the action answers
			_ = resp.Body.Close()
			return nil, err
		case err != nil:
			return nil, err
		case resp == nil:
			return nil, io.ErrUnexpectedEOF
		}
		return resp, nil
	case <-req.Context().Done(): // the client has gone
		return nil, req.Context().Err()
	}
}

// newWire returns a wire that gives its answer to a channel.
func newWire(s *exchange.Server, req *http.Request, answer chan *http.Response) *wire {
	x := &wire{StdHead: exchange.StdHead{Req: req}, server: s, answer: answer}
	x.ctx, x.end = context.WithCancel(req.Context())
	x.call = s.Pipeline.NewCall(x)
	x.s = x.call.State()
	return x
}

// run answers the request, on a goroutine of its own.
func (x *wire) run(route *exchange.Route) {
	start := time.Now()
	defer func() { _ = x.Req.Body.Close() }() // last, since it may wait for what is left of it; nothing is lost by an error
	defer x.end()
	defer func() { x.cut() }() // unless it is answered
	var a exchange.Answer
	if route.Timeout == 0 {
		a = exchange.Finish(x.call)
	} else {
		instead := x.instead()
		x.race = exchange.NewRace(x.ctx, route.Timeout)
		x.ctx = x.race.Context
		var late bool
		if a, late = x.race.Run(x.call, x.server.Pipeline); late {
			instead.call.Succeed(x.call)
			a = instead.call.Amend(x.server.Pipeline.Late(route), exchange.FromTimeout)
			x = instead
		}
	}
	if x.s.Watched {
		x.call.Observe(a, time.Since(start))
	}
	whole := x.settled(&a)
	x.call.End()
	exchange.RemoveForm(x.Req)
	x.lent.End()
	switch { // who has all of its answer knows that the request has ended
	case whole != nil:
		x.resp = whole
		x.answer <- whole
	case x.finished:
		x.finish()
	}
}

// instead returns the wire for an answer that is given without the action: it has nothing
// that the action may change.
func (x *wire) instead() *wire {
	y := newWire(x.server, x.Req.Clone(x.ctx), x.answer)
	y.s.Set(x.s.Method, x.s.Path, x.s.Query, false)
	y.call.Begin(true)
	y.s.Route, y.close = x.s.Route, true
	return y
}

// settled returns a settled answer, nil if it was sent or there is to be none.
func (x *wire) settled(a *exchange.Answer) *http.Response {
	if a.Kind() == exchange.Sent || a.Kind() == exchange.Abort {
		return nil // cut comes next, unless the body is finished
	}
	resp := x.head(a, max(a.Announced(), -1)) // NoLength is less
	if resp.Body = http.NoBody; x.bodied(a) {
		resp.Body = io.NopCloser(bytes.NewReader([]byte(a.Body))) // which may lie in memory of the request
	}
	a.Release()
	return resp
}

// bodied reports whether an answer goes out with its body.
func (x *wire) bodied(a *exchange.Answer) bool {
	return x.Req.Method != http.MethodHead && exchange.BodyAllowed(a.Status())
}

// head makes the head of an answer; length is that of the body, -1 if it is not known.
func (x *wire) head(a *exchange.Answer, length int64) *http.Response {
	status := a.Status()
	resp := &http.Response{
		Status: strconv.Itoa(status) + " " + http.StatusText(status), StatusCode: status,
		Proto: x.Req.Proto, ProtoMajor: x.Req.ProtoMajor, ProtoMinor: x.Req.ProtoMinor,
		Header: make(http.Header), ContentLength: length, Close: x.close || x.Req.Close, Request: x.Req,
	}
	for name, value := range a.Headers {
		if status != http.StatusNotModified || name != "Content-Type" { // it describes a body that is not sent
			resp.Header[name] = append(resp.Header[name], value)
		}
	}
	if !x.undated && !a.Dated() {
		resp.Header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	}
	switch {
	case !exchange.BodyAllowed(status):
		resp.ContentLength = 0
	case length >= 0:
		resp.Header.Set("Content-Length", strconv.FormatInt(length, 10))
	case x.bodied(a):
		resp.TransferEncoding = []string{"chunked"}
	}
	return resp
}

// cut ends an answer in the middle, or gives none.
func (x *wire) cut() {
	switch {
	case x.body != nil:
		_ = x.body.CloseWithError(io.ErrUnexpectedEOF) // has no effect on one that has ended
	case x.resp == nil:
		x.answer <- nil
	}
	x.end()
}
