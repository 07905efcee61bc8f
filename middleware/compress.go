package middleware

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/dunlinhttp/dunlin"
)

// Compression says what Compress compresses. The zero value of every field
// stands for its default.
type Compression struct {
	// MinSize is the smallest body, in bytes, that is worth it. Default: 1024.
	MinSize int

	// Level is that of package gzip, from 1 (fast) to 9 (small). Default:
	// gzip.DefaultCompression.
	Level int

	// MediaTypes are the media types to compress, without parameters;
	// "text/*" stands for a whole type and "*+json" for a suffix. Default:
	// text/*, *+json, *+xml, application/json, application/javascript,
	// application/xml and application/wasm.
	MediaTypes []string
}

var compressible = []string{
	"text/*", "*+json", "*+xml",
	"application/json", "application/javascript", "application/xml", "application/wasm",
}

// Compress sends bodies with gzip to clients that accept it (RFC 9110 section
// 12.5.3). It leaves alone what is small, a stream, a part (206) or encoded
// already, and a body that would not get smaller. Responses that depend on
// Accept-Encoding say so in Vary, compressed or not. A strong ETag becomes a weak
// one, for the bytes are not the same any more.
//
// Put it before ETag, so that a tag is made of the plain body. Do not compress
// answers that hold a secret beside text that a client chose (the BREACH
// attack). Compress panics when a setting cannot hold.
func Compress(c Compression) dunlin.Middleware {
	if c.MinSize == 0 {
		c.MinSize = 1024
	}
	if c.Level == 0 {
		c.Level = gzip.DefaultCompression
	}
	if c.MediaTypes == nil {
		c.MediaTypes = compressible
	}
	if c.MinSize < 0 {
		panic(fmt.Sprintf("middleware: Compress: MinSize is %d: it must not be negative", c.MinSize))
	}
	if _, err := gzip.NewWriterLevel(nil, c.Level); err != nil {
		panic("middleware: Compress: Level: " + err.Error())
	}
	z := &zipper{level: c.Level}
	return func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			resp := next(r)
			if !c.covers(resp) {
				return resp
			}
			if !varies(resp) {
				resp = resp.AddHeader("Vary", "Accept-Encoding")
			}
			if !acceptsGzip(r.Header("Accept-Encoding")) {
				return resp
			}
			if resp.StatusCode() == http.StatusNotModified {
				return weaken(resp) // as the 200 would say
			}
			packed := z.pack(resp.Body())
			if packed == nil {
				return resp
			}
			return weaken(resp.WithBody(packed).Header("Content-Encoding", "gzip"))
		}
	}
}

// covers reports whether the response is of the kind to compress.
func (c *Compression) covers(resp dunlin.Response) bool {
	if resp.Len() < c.MinSize || resp.Get("Content-Encoding") != "" {
		return false
	}
	switch resp.StatusCode() {
	case http.StatusNoContent, http.StatusPartialContent:
		return false
	}
	mediaType, _, _ := strings.Cut(resp.Get("Content-Type"), ";")
	mediaType = strings.TrimSpace(mediaType)
	for _, want := range c.MediaTypes {
		if matches(mediaType, want) {
			return true
		}
	}
	return false
}

// matches reports whether a media type is the wanted one; "text/*" and "*+json"
// are wanted by their beginning and end.
func matches(mediaType, want string) bool {
	n := len(mediaType) - len(want) + 1
	switch {
	case strings.EqualFold(mediaType, want):
		return true
	case n < 0:
		return false
	case strings.HasSuffix(want, "*"):
		return strings.EqualFold(mediaType[:len(want)-1], want[:len(want)-1])
	case strings.HasPrefix(want, "*"):
		return strings.EqualFold(mediaType[n:], want[1:])
	}
	return false
}

// varies reports whether the response says already that it depends on
// Accept-Encoding.
func varies(resp dunlin.Response) bool {
	for _, line := range resp.Values("Vary") {
		for name := range strings.SplitSeq(line, ",") {
			if name = strings.TrimSpace(name); name == "*" || strings.EqualFold(name, "Accept-Encoding") {
				return true
			}
		}
	}
	return false
}

// weaken makes a strong ETag weak (RFC 9110 section 8.8.1).
func weaken(resp dunlin.Response) dunlin.Response {
	if tag := resp.Get(etag); strings.HasPrefix(tag, `"`) {
		return resp.Header(etag, "W/"+tag)
	}
	return resp
}

// acceptsGzip reports whether Accept-Encoding allows gzip and does not prefer
// the plain body. Without the header a client gets what every client can read.
func acceptsGzip(accept string) bool {
	const unsaid = -1.0
	packed, plain, rest := unsaid, unsaid, unsaid
	for item := range strings.SplitSeq(accept, ",") {
		coding, params, _ := strings.Cut(item, ";")
		switch coding = strings.TrimSpace(coding); {
		case strings.EqualFold(coding, "gzip"), strings.EqualFold(coding, "x-gzip"):
			packed = max(packed, quality(params))
		case strings.EqualFold(coding, "identity"):
			plain = quality(params)
		case coding == "*":
			rest = quality(params)
		}
	}
	if packed == unsaid {
		packed = rest
	}
	return packed > 0 && packed >= plain
}

// quality returns the weight among parameters (RFC 9110 section 12.4.2): 1
// when there is none, 0 when it is malformed.
func quality(params string) float64 {
	for param := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(param), "=")
		if !strings.EqualFold(name, "q") {
			continue
		}
		q, err := strconv.ParseFloat(value, 64)
		if err != nil || !(q >= 0 && q <= 1) {
			return 0
		}
		return q
	}
	return 1
}

// A zipper compresses with pooled writers, which are large.
type zipper struct {
	level int
	pool  sync.Pool // of *pack
}

type pack struct {
	buf bytes.Buffer
	gz  *gzip.Writer
}

// keptPack is the largest buffer, in bytes, that the pool keeps.
const keptPack = 1 << 20

// pack returns body compressed, in memory of its own, or nil when that would not
// be smaller.
func (z *zipper) pack(body []byte) []byte {
	p, ok := z.pool.Get().(*pack)
	if !ok {
		p = new(pack)
		p.gz, _ = gzip.NewWriterLevel(&p.buf, z.level) // Compress has tried the level
	}
	p.buf.Reset()
	p.gz.Reset(&p.buf)
	_, _ = p.gz.Write(body) // a bytes.Buffer takes everything
	_ = p.gz.Close()
	var packed []byte
	if p.buf.Len() < len(body) {
		packed = bytes.Clone(p.buf.Bytes())
	}
	if p.buf.Cap() <= keptPack {
		z.pool.Put(p)
	}
	return packed
}
