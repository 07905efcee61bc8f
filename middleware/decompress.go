package middleware

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"

	"github.com/dunlinhttp/dunlin"
)

// Decompression says what Decompress decodes. The zero value of every field stands for its default.
type Decompression struct {
	// Codings are what is decoded; module compress has zstd and Brotli. Default: gzip and deflate.
	Codings []*Coding

	// MaxSize bounds a body once it is decoded, and at every step on the way, in bytes. The limit of the route
	// ([dunlin.Group.MaxBody]) bounds it in any case. Default: that limit alone.
	MaxSize int64
}

// mostCodings bounds how often a body may be encoded: each takes a decoder.
const mostCodings = 2

// Decompress takes the content codings off the bodies of requests (RFC 9110 section 8.4), so that actions, forms, Decode and standard
// handlers see them plain, and neither Content-Encoding nor Content-Length. Bodies are read in whole, before the action: the bound on a body holds for
// what is sent and for what becomes of it, so that a small body that becomes a large one (a compression bomb) is answered with
// 413 as soon as it passes the bound; so is what of two codings is large between them, and nothing in the end. A coding that is not
// among Codings, or more than two of them, are answered with 415 and Accept-Encoding (RFC 9110 section 15.5.16), a body that is not what
// it says with 400. As many bodies are decoded at once as there are processors. Requests without Content-Encoding pass, and pay nothing but a look at it.
//
// Put it behind what refuses requests and before what reads bodies; ContentDigest, which is about the body as sent, goes before it.
// Decompress panics when a setting is not valid.
func Decompress(d Decompression) dunlin.Middleware {
	if d.Codings == nil {
		d.Codings = []*Coding{Gzip(1), Deflate()}
	}
	if d.MaxSize < 0 {
		panic(fmt.Sprintf("middleware: Decompress: MaxSize is %d: it must not be negative", d.MaxSize))
	}
	var names []string
	for i, c := range d.Codings {
		if c == nil || c.Name == "" || c.Open == nil {
			panic(fmt.Sprintf("middleware: Decompress: Codings[%d] has no name or no Open", i))
		}
		names = append(names, c.Name)
	}
	known := dunlin.NewHeaderBlock("Accept-Encoding", strings.Join(names, ", "))
	places := make(chan struct{}, runtime.GOMAXPROCS(0))
	return func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			list := r.HeaderList("Content-Encoding")
			if list == "" {
				return next(r)
			}
			codings, unknown := d.parse(list)
			if unknown != "" {
				return dunlin.Problem(dunlin.ProblemDetails{Status: http.StatusUnsupportedMediaType, Detail: unknown}).Headers(known)
			}
			if len(codings) == 0 {
				return next(r)
			}
			if err := d.decode(r, codings, places); err != nil {
				return dunlin.Error(err)
			}
			return next(r)
		}
	}
}

// decode takes the codings off the body of r when it has come and one of places is free: a decoder has up to 16 MB, which a body of a few bytes
// may ask for, and more of them than there are processors are done no sooner.
func (d *Decompression) decode(r *dunlin.Request, codings []*Coding, places chan struct{}) error {
	chain := decoding{max: d.MaxSize}
	defer chain.close()
	return r.DecodeBody(func(src io.Reader) (io.Reader, error) {
		select {
		case places <- struct{}{}:
			chain.places = places
		case <-r.Context().Done():
			return nil, &dunlin.ProblemDetails{Status: http.StatusServiceUnavailable, Detail: "the request body was not decoded in time", Cause: r.Context().Err(), Temporary: true}
		}
		return chain.open(src, codings)
	})
}

// parse returns the codings of a body in the order in which they were applied, or what is wrong with the list.
func (d *Decompression) parse(list string) (codings []*Coding, unknown string) {
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		if name == "" || strings.EqualFold(name, "identity") {
			continue
		}
		c := d.coding(name)
		if c == nil {
			return nil, fmt.Sprintf("the content coding %.40q is not supported", name)
		}
		if codings = append(codings, c); len(codings) > mostCodings {
			return nil, fmt.Sprintf("the body has more than %d content codings", mostCodings)
		}
	}
	return codings, ""
}

func (d *Decompression) coding(name string) *Coding {
	if strings.EqualFold(name, "x-gzip") {
		name = "gzip"
	}
	for _, c := range d.Codings {
		if strings.EqualFold(c.Name, name) {
			return c
		}
	}
	return nil
}

// A decoding is the readers that take the codings off a body.
type decoding struct {
	max    int64
	opened []io.Closer
	places chan struct{} // where it has a place, that it gives back; nil: it has none
}

// What comes out of a coding that is not the last one is bounded by what was sent: encoded bytes hardly get smaller by another coding, but
// for those that decode to nothing, such as empty members of gzip, of which a few KB become as many as take a second.
const (
	leastBetween = 1 << 20
	growBetween  = 32 // times what was sent
	mostBetween  = 64 << 20
)

// open returns the reader of the plain body.
func (d *decoding) open(src io.Reader, codings []*Coding) (io.Reader, error) {
	between := int64(mostBetween)
	if whole, ok := src.(interface{ Len() int }); ok { // which DecodeBody gives
		between = min(max(growBetween*int64(whole.Len()), leastBetween), mostBetween)
	}
	if d.max > 0 {
		between = min(between, d.max)
	}
	for i := len(codings) - 1; i >= 0; i-- {
		opened, err := codings[i].Open(src)
		if err != nil {
			return nil, err
		}
		if c, ok := opened.(io.Closer); ok {
			d.opened = append(d.opened, c)
		}
		src = opened
		switch {
		case i > 0:
			src = &bounded{src: src, left: between, max: between}
		case d.max > 0:
			src = &bounded{src: src, left: d.max, max: d.max}
		}
	}
	return src, nil
}

func (d *decoding) close() {
	for _, c := range d.opened {
		_ = c.Close() // what counts has been read
	}
	if d.places != nil {
		<-d.places
	}
}

// bounded reads no more than so much, and fails with a 413 problem.
type bounded struct {
	src       io.Reader
	left, max int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.src.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, &dunlin.ProblemDetails{
			Status: http.StatusRequestEntityTooLarge, Detail: fmt.Sprintf("the request body is larger than the limit of %d bytes once it is decoded", b.max),
		}
	}
	return n, err
}
