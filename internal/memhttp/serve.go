// Package memhttp is the adapter without a network, for tests. It runs a net/http request through the pipeline of an app. It
// is the smallest adapter, and the best one to read first. Each request has a wire and a goroutine. The body of a streamed
// response is a pipe. The adapter has no statistics, no limits and no hijacking.
package memhttp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/semantics"
)

// Serve returns the response to a request. req must have the form of a request of a net/http server, and belongs to Serve.
// Serve returns when the head of the response is complete. The caller must close the body.
func Serve(s *exchange.Server, req *http.Request) (*http.Response, error) {
	path, bad := semantics.AppendCanonical(nil, req.URL.EscapedPath())
	if bad >= 0 {
		return nil, fmt.Errorf("bad percent escape at offset %d of the path", bad)
	}
	if len(path) == 0 && req.Method != http.MethodConnect {
		path = []byte("/") // see RFC 9110 section 4.2.3
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
		case err != nil && resp != nil: // the client has disconnected, so the action's response may only report the disconnect
			_ = resp.Body.Close()
			return nil, err
		case err != nil:
			return nil, err
		case resp == nil:
			return nil, io.ErrUnexpectedEOF
		}
		return resp, nil
	case <-req.Context().Done(): // the client has disconnected
		return nil, req.Context().Err()
	}
}

// newWire returns a wire that sends its response to a channel.
func newWire(s *exchange.Server, req *http.Request, answer chan *http.Response) *wire {
	x := &wire{StdHead: exchange.StdHead{Req: req}, server: s, answer: answer}
	x.ctx, x.end = context.WithCancel(req.Context())
	x.call = s.Pipeline.NewCall(x)
	x.s = x.call.State()
	return x
}

// run runs the request. It is called on a new goroutine.
func (x *wire) run(route *exchange.Route) {
	start := time.Now()
	defer func() { _ = x.Req.Body.Close() }() // this runs last, because Close may wait for the rest of the body; its error has no effect
	defer x.end()
	defer func() { x.cut() }() // has no effect after a complete response
	var a exchange.Answer
	if route.Timeout == 0 {
		a = exchange.Finish(x.call)
	} else {
		spare := x.timeoutWire()
		x.race = exchange.NewRace(x.ctx, route.Timeout)
		x.ctx = x.race.Context
		var late bool
		if a, late = x.race.Run(x.call, x.server.Pipeline); late {
			spare.call.InheritFrom(x.call)
			a = spare.call.Decorate(x.server.Pipeline.Late(route), exchange.FromTimeout)
			x = spare
		}
	}
	if x.s.Watched {
		x.call.Observe(a, time.Since(start))
	}
	whole := x.buffered(&a)
	x.call.End()
	exchange.RemoveForm(x.Req)
	x.lent.End()
	switch { // the request ends with the end of the response body
	case whole != nil:
		x.resp = whole
		x.answer <- whole
	case x.finished:
		x.finish()
	}
}

// timeoutWire returns a second wire for the response that reports a timeout. The action cannot access it.
func (x *wire) timeoutWire() *wire {
	y := newWire(x.server, x.Req.Clone(x.ctx), x.answer)
	y.s.Set(x.s.Method, x.s.Path, x.s.Query, false)
	y.call.Begin(true)
	y.s.Route, y.close = x.s.Route, true
	return y
}

// buffered converts a complete answer to a response. It returns nil if the answer was streamed or aborted.
func (x *wire) buffered(a *exchange.Answer) *http.Response {
	if a.Kind() == exchange.Sent || a.Kind() == exchange.Abort {
		return nil // cut follows, unless the body is finished
	}
	resp := x.head(a, max(a.Announced(), -1)) // NoLength is less than -1
	if resp.Body = http.NoBody; x.bodied(a) {
		resp.Body = io.NopCloser(bytes.NewReader([]byte(a.Body))) // a copy, because the body may share memory of the request
	}
	a.Release()
	return resp
}

// bodied reports whether the response to the request has a body.
func (x *wire) bodied(a *exchange.Answer) bool {
	return x.Req.Method != http.MethodHead && exchange.BodyAllowed(a.Status())
}

// head returns a response without its body. length is the length of the body, or -1 if it is unknown.
func (x *wire) head(a *exchange.Answer, length int64) *http.Response {
	status := a.Status()
	resp := &http.Response{
		Status: strconv.Itoa(status) + " " + http.StatusText(status), StatusCode: status,
		Proto: x.Req.Proto, ProtoMajor: x.Req.ProtoMajor, ProtoMinor: x.Req.ProtoMinor,
		Header: make(http.Header), ContentLength: length, Close: x.close || x.Req.Close, Request: x.Req,
	}
	for name, value := range a.Headers {
		if status != http.StatusNotModified || name != "Content-Type" { // a 304 has no body that Content-Type could describe
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

// cut aborts the response, unless it is complete.
func (x *wire) cut() {
	switch {
	case x.body != nil:
		_ = x.body.CloseWithError(io.ErrUnexpectedEOF) // this has no effect on a finished body
	case x.resp == nil:
		x.answer <- nil
	}
	x.end()
}
