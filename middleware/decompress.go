package middleware

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"

	"github.com/dunlinhttp/dunlin"
)

// DecompressConfig has the settings of [Decompress]. A zero field selects its documented default.
type DecompressConfig struct {
	// Codings are the codings to decode. Module compress has zstd and Brotli. Default: gzip and
	// deflate.
	Codings []*Coding

	// MaxSize limits the decoded body, in bytes. The route's limit ([dunlin.Group.WithMaxBody]) always
	// applies as well. Default: only the route's limit.
	MaxSize int64
}

// Decompress decodes the content coding of request bodies (RFC 9110 section 8.4). Actions, forms,
// Decode and standard handlers see the plain body, and neither Content-Encoding nor Content-Length.
// The whole body is read before the action runs. The limit on bodies applies to the encoded and to the
// decoded body: a small body that becomes a large one (a compression bomb) is answered with 413 as
// soon as it exceeds the limit. A coding that is not in Codings, or more than one coding, is answered
// with 415 and Accept-Encoding (RFC 9110 section 15.5.16). A body that is not valid in its coding is
// answered with 400. The number of bodies that are decoded at the same time is limited to the number
// of processors. A request without Content-Encoding costs one header lookup.
//
// Put Decompress after middleware that refuses requests, and before middleware that reads bodies. Put
// it after ContentDigest, which checks the encoded body. Decompress panics for an invalid setting.
func Decompress(d DecompressConfig) dunlin.Middleware {
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
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	return func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			list := r.HeaderList("Content-Encoding")
			if list == "" {
				return next(r)
			}
			coding, unknown := d.parse(list)
			if unknown != "" {
				return dunlin.Problem(&dunlin.ProblemDetails{Status: http.StatusUnsupportedMediaType, Detail: unknown}).With(known)
			}
			if coding == nil {
				return next(r)
			}
			if err := d.decode(r, coding, slots); err != nil {
				return dunlin.Error(err)
			}
			return next(r)
		}
	}
}

// decode decodes the complete body of r when slots has room. A body of a few bytes can make a decoder
// allocate up to 16 MB, and more decoders than processors do not decode faster.
func (d *DecompressConfig) decode(r *dunlin.Request, coding *Coding, slots chan struct{}) error {
	one := decoding{slots: slots}
	defer one.close()
	return r.DecodeBody(func(src io.Reader) (io.Reader, error) {
		select {
		case slots <- struct{}{}:
			one.acquired = true
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

// parse returns the coding of a body, nil for none, or an error detail for the client. Only one coding is supported: with
// two, a small body could cost the decoding time of a much larger one.
func (d *DecompressConfig) parse(list string) (coding *Coding, unknown string) {
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

func (d *DecompressConfig) coding(name string) *Coding {
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

// A decoding is a body's decoder and the slot that it occupies.
type decoding struct {
	opened   io.Closer // nil if the reader has no Close
	slots    chan struct{}
	acquired bool
}

func (d *decoding) close() {
	if d.opened != nil {
		_ = d.opened.Close() // the body has been read
	}
	if d.acquired {
		<-d.slots
	}
}

// bounded limits the bytes of src, and fails with a 413 problem beyond the limit.
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
