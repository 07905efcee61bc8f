package middleware

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"

	"github.com/dunlinhttp/dunlin"
)

// Decompression has the settings of [Decompress]. The zero value of every field stands for its default.
type Decompression struct {
	// Codings are what is decoded; module compress has zstd and Brotli. Default: gzip and deflate.
	Codings []*Coding

	// MaxSize bounds a body once it is decoded, in bytes. The limit of the route
	// ([dunlin.Group.MaxBody]) bounds it in any case. Default: that limit alone.
	MaxSize int64
}

// Decompress takes the content codings off the bodies of requests (RFC 9110 section 8.4), so that actions, forms, Decode and standard
// handlers see them plain, and neither Content-Encoding nor Content-Length. The whole body is read before the action: the bound on a body holds for
// the encoded and for the decoded one, so that a small body that becomes a large one (a compression bomb) is answered with
// 413 as soon as it passes the bound. A coding that is not
// among Codings, or more than one of them, is answered with 415 and Accept-Encoding (RFC 9110 section 15.5.16), a body that is not in its
// coding with 400. As many bodies are decoded at once as there are processors. Requests without Content-Encoding pass, and pay nothing but a look at it.
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
			coding, unknown := d.parse(list)
			if unknown != "" {
				return dunlin.Problem(dunlin.ProblemDetails{Status: http.StatusUnsupportedMediaType, Detail: unknown}).Headers(known)
			}
			if coding == nil {
				return next(r)
			}
			if err := d.decode(r, coding, places); err != nil {
				return dunlin.Error(err)
			}
			return next(r)
		}
	}
}

// decode takes the coding off the body of r when it has come and one of places is free: a decoder has up to 16 MB, which a body of a few bytes
// may ask for, and more of them than there are processors are done no sooner.
func (d *Decompression) decode(r *dunlin.Request, coding *Coding, places chan struct{}) error {
	one := decoding{places: places}
	defer one.close()
	return r.DecodeBody(func(src io.Reader) (io.Reader, error) {
		select {
		case places <- struct{}{}:
			one.placed = true
		case <-r.Context().Done():
			return nil, &dunlin.ProblemDetails{Status: http.StatusServiceUnavailable, Detail: "the request body was not decoded in time", Cause: r.Context().Err(), Temporary: true}
		}
		opened, err := coding.Open(src)
		if err != nil {
			return nil, err
		}
		one.opened, _ = opened.(io.Closer)
		if d.MaxSize > 0 {
			return &bounded{src: opened, left: d.MaxSize, max: d.MaxSize}, nil
		}
		return opened, nil
	})
}

// parse returns the coding of a body, nil for none, or a detail for the client. One alone is decoded: of two, the
// inner one can cost the time of a body that is many times as large, and decode to nothing.
func (d *Decompression) parse(list string) (coding *Coding, unknown string) {
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		if name == "" || strings.EqualFold(name, "identity") {
			continue
		}
		if coding != nil {
			return nil, "the body has more than one content coding"
		}
		if coding = d.coding(name); coding == nil {
			return nil, fmt.Sprintf("the content coding %.40q is not supported", name)
		}
	}
	return coding, ""
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

// A decoding is the reader that takes the coding off a body, and the place that it has.
type decoding struct {
	opened io.Closer // nil: there is nothing to close
	places chan struct{}
	placed bool
}

func (d *decoding) close() {
	if d.opened != nil {
		_ = d.opened.Close() // what counts has been read
	}
	if d.placed {
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
