package middleware

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/dunlinhttp/dunlin"
)

// Compression says what Compress compresses. The zero value of every field
// stands for its default.
type Compression struct {
	// MinSize is the smallest body, in bytes, that is worth it, and the smallest piece of a stream. Default: 1024.
	MinSize int

	// Level is that of package gzip, from 1 (fast) to 9 (small). Default:
	// gzip.DefaultCompression.
	Level int

	// MediaTypes are the media types to compress, without parameters;
	// "text/*" stands for a whole type and "*+json" for a suffix. Default:
	// text/*, *+json, *+xml, application/json, application/javascript,
	// application/xml and application/wasm.
	MediaTypes []string

	// Codings are what to compress with, the best first: of those that a client likes as much, it gets the first.
	// Module compress has zstd and Brotli. Default: Gzip(Level).
	Codings []*Coding

	// Streams bounds how many streams have a compressor at once; each has up to about 1 MB. What others send meanwhile is in
	// the coding, too, but not compressed. Default: 64.
	Streams int
}

var compressible = []string{
	"text/*", "*+json", "*+xml",
	"application/json", "application/javascript", "application/xml", "application/wasm",
}

// Compress sends bodies compressed to clients that accept it (RFC 9110 section
// 12.5.3), with gzip or what Codings says. It leaves alone what is small, a part (206), encoded
// already, not to be transformed (Cache-Control: no-transform) or the subject of a Content-Digest or Repr-Digest (RFC 9530), which are of the
// bytes as they are, and a body that would not get smaller. Responses that depend on
// Accept-Encoding say so in Vary, compressed or not, in whole or a part. A strong ETag becomes a weak
// one, for the bytes are not the same any more, and Accept-Ranges none: ranges are of the plain body.
//
// Streams, events, files and long answers of standard handlers are compressed as they are sent, and what is flushed can be read at once.
// Between a flush and what is written next a stream holds no compressor, which therefore knows nothing of what was sent before: events
// of less than MinSize are sent as they are.
//
// Put it before ETag, so that a tag is made of the plain body. Do not compress
// answers that hold a secret beside text that a client chose (the BREACH
// attack). Compress panics when a setting is not valid.
func Compress(c Compression) dunlin.Middleware {
	k := newCompressor(c)
	return func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			resp := next(r)
			if resp.Len() >= 0 {
				resp = k.compress(r, resp)
			}
			return resp.EncodeLater(func(head dunlin.Response, size int64) (dunlin.Response, func(io.Writer) dunlin.BodyEncoder) {
				if head.Len() >= 0 {
					return k.compress(r, head), nil
				}
				return k.begin(r, head, size)
			})
		}
	}
}

// A compressor is a Compression in use.
type compressor struct {
	Compression
	streaming []*Coding // those that are for streams
	running   atomic.Int64
	buffers   sync.Pool // of *[]byte
}

func newCompressor(c Compression) *compressor {
	if c.MinSize == 0 {
		c.MinSize = 1024
	}
	if c.Level == 0 {
		c.Level = gzip.DefaultCompression
	}
	if c.MediaTypes == nil {
		c.MediaTypes = compressible
	}
	if c.Streams == 0 {
		c.Streams = 64
	}
	if c.MinSize < 0 || c.Streams < 0 {
		panic(fmt.Sprintf("middleware: Compress: MinSize is %d and Streams %d: they must not be negative", c.MinSize, c.Streams))
	}
	if _, err := gzip.NewWriterLevel(nil, c.Level); err != nil {
		panic("middleware: Compress: Level: " + err.Error())
	}
	if c.Codings == nil {
		c.Codings = []*Coding{Gzip(c.Level)}
	}
	k := &compressor{Compression: c}
	for i, coding := range c.Codings {
		if coding == nil || coding.Name == "" || coding.Append == nil {
			panic(fmt.Sprintf("middleware: Compress: Codings[%d] has no name or no Append", i))
		}
		if coding.Begin != nil {
			k.streaming = append(k.streaming, coding)
		}
	}
	return k
}

// compress returns a complete response as the client gets it.
func (k *compressor) compress(r *dunlin.Request, resp dunlin.Response) dunlin.Response {
	if !k.covers(resp, int64(resp.Len())) {
		return k.left(r, resp)
	}
	if !varies(resp) {
		resp = resp.AddHeader("Vary", "Accept-Encoding")
	}
	coding := choose(r.HeaderList("Accept-Encoding"), k.Codings)
	if coding == nil {
		return resp
	}
	if resp.StatusCode() == http.StatusNotModified {
		return weaken(resp) // as the 200 would say
	}
	packed := k.pack(coding, resp.Body())
	if packed == nil {
		return resp
	}
	return encodedBy(coding, resp.WithBody(packed))
}

// begin decides about a stream.
func (k *compressor) begin(r *dunlin.Request, head dunlin.Response, size int64) (dunlin.Response, func(io.Writer) dunlin.BodyEncoder) {
	if !k.covers(head, size) {
		return k.left(r, head), nil
	}
	if !varies(head) {
		head = head.AddHeader("Vary", "Accept-Encoding")
	}
	accept := r.HeaderList("Accept-Encoding")
	coding := choose(accept, k.streaming)
	if coding == nil {
		if r.Method() == http.MethodHead && choose(accept, k.Codings) != nil {
			return head, lengthless
		}
		return head, nil
	}
	return encodedBy(coding, head), func(w io.Writer) dunlin.BodyEncoder {
		return &piecewise{k: k, coder: coding.Begin(w)}
	}
}

// encodedBy says in the headers that the body is in a coding.
func encodedBy(coding *Coding, resp dunlin.Response) dunlin.Response {
	if resp.Get("Accept-Ranges") != "" {
		resp = resp.Header("Accept-Ranges", "none")
	}
	return weaken(resp.Header("Content-Encoding", coding.Name))
}

// lengthless stands for an encoder where there is none to be made, for HEAD: GET of what is small is encoded in whole, by a coding that
// is not for streams, and so the length of the plain body must not be said (RFC 9110 section 8.6).
func lengthless(io.Writer) dunlin.BodyEncoder { return nil }

// left returns a response that is not to be compressed. A part, and a 304 to who may have got a compressed body, say in Vary what the whole
// does (RFC 9110 sections 15.3.7 and 15.4.5), and a 304 has a weak tag if the client asked with that.
func (k *compressor) left(r *dunlin.Request, resp dunlin.Response) dunlin.Response {
	switch resp.StatusCode() {
	case http.StatusPartialContent:
		if resp.Get("Content-Encoding") != "" || untouchable(resp) || !k.coversType(resp) {
			return resp
		}
	case http.StatusNotModified: // of what type the whole is it does not say
		tag := resp.Get(etag)
		if tag == "" || resp.Get("Content-Encoding") != "" || untouchable(resp) {
			return resp
		}
		if strings.Contains(r.HeaderList("If-None-Match"), "W/"+tag) {
			resp = weaken(resp)
		}
	default:
		return resp
	}
	if varies(resp) {
		return resp
	}
	return resp.AddHeader("Vary", "Accept-Encoding")
}

// keptPack is the largest buffer, in bytes, that the pool keeps.
const keptPack = 1 << 20

// pack returns body compressed, in memory of its own, or nil when that would not
// be smaller.
func (k *compressor) pack(coding *Coding, body []byte) (packed []byte) {
	buf, ok := k.buffers.Get().(*[]byte)
	if !ok {
		buf = new([]byte)
	}
	*buf = coding.Append((*buf)[:0], body)
	if len(*buf) < len(body) {
		packed = bytes.Clone(*buf)
	}
	if cap(*buf) <= keptPack {
		k.buffers.Put(buf)
	}
	return packed
}

// piecewise encodes a stream. Pieces that are small, or for which there is no compressor, are encoded without one.
type piecewise struct {
	k        *compressor
	coder    StreamCoder
	has      bool   // a compressor
	gathered []byte // of a piece that is still small
}

func (s *piecewise) Write(p []byte) (int, error) {
	if s.has {
		return s.coder.Write(p)
	}
	if len(s.gathered)+len(p) < s.k.MinSize {
		s.gathered = append(s.gathered, p...)
		return len(p), nil
	}
	s.has = s.k.running.Add(1) <= int64(s.k.Streams)
	if !s.has {
		s.k.running.Add(-1)
		if err := s.plain(); err != nil {
			return 0, err
		}
		if err := s.coder.Plain(p); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	if gathered := s.gathered; len(gathered) > 0 {
		s.gathered = nil
		if _, err := s.coder.Write(gathered); err != nil {
			return 0, err
		}
	}
	return s.coder.Write(p)
}

// plain encodes what is gathered.
func (s *piecewise) plain() error {
	gathered := s.gathered
	s.gathered = nil
	if len(gathered) == 0 {
		return nil
	}
	return s.coder.Plain(gathered)
}

// leave gives the compressor back, if there is one.
func (s *piecewise) leave() {
	if s.has {
		s.has = false
		s.k.running.Add(-1)
	}
}

func (s *piecewise) Flush() error {
	if !s.has {
		return s.plain()
	}
	defer s.leave()
	return s.coder.Flush()
}

func (s *piecewise) Close() error {
	defer s.leave()
	if err := s.plain(); err != nil {
		_ = s.coder.Close() // which fails, too
		return err
	}
	return s.coder.Close()
}

// covers reports whether the response, of size bytes or -1, is of the kind to compress.
func (c *Compression) covers(resp dunlin.Response, size int64) bool {
	if size >= 0 && size < int64(c.MinSize) || resp.Get("Content-Encoding") != "" || untouchable(resp) ||
		resp.Get("Content-Digest") != "" || resp.Get("Repr-Digest") != "" {
		return false
	}
	switch resp.StatusCode() {
	case http.StatusNoContent, http.StatusPartialContent:
		return false
	}
	return c.coversType(resp)
}

// coversType reports whether the response is of a media type to compress; for a part of several ranges that is not known.
func (c *Compression) coversType(resp dunlin.Response) bool {
	mediaType, _, _ := strings.Cut(resp.Get("Content-Type"), ";")
	mediaType = strings.TrimSpace(mediaType)
	if mediaType == "multipart/byteranges" && resp.StatusCode() == http.StatusPartialContent {
		return true
	}
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

// untouchable reports whether Cache-Control says no-transform (RFC 9111 section 5.2.2.6).
func untouchable(resp dunlin.Response) bool {
	for name, value := range resp.Fields() {
		if name == "Cache-Control" && slices.ContainsFunc(strings.Split(value, ","), func(directive string) bool {
			return strings.EqualFold(strings.TrimSpace(directive), "no-transform")
		}) {
			return true
		}
	}
	return false
}
