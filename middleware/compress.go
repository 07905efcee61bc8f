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
	"github.com/dunlinhttp/dunlin/ext"
)

// CompressConfig has the settings of [Compress]. A zero field selects its documented default.
type CompressConfig struct {
	// MinSize is the minimum size of a compressed body, and of a compressed piece of a stream, in
	// bytes. Smaller bodies and pieces are not compressed. Default: 1024.
	MinSize int

	// Level is the level of package gzip, from 1 (fast) to 9 (small). Default:
	// gzip.DefaultCompression.
	Level int

	// MediaTypes are the media types to compress, without parameters. "text/*" matches every
	// subtype, and "*+json" a suffix. Default: text/*, *+json, *+xml, application/json,
	// application/javascript, application/xml and application/wasm.
	MediaTypes []string

	// Codings are the codings to compress with, in order of preference. If several codings have the
	// same weight in Accept-Encoding, the first of them is used. Module compress has zstd and Brotli.
	// Default: Gzip(Level).
	Codings []*Coding

	// Streams limits the number of streams that have a compressor at the same time. A compressor takes
	// up to about 1 MB. The data of other streams is sent in the format of the coding, but uncompressed.
	// Default: 64.
	Streams int
}

var compressible = []string{
	"text/*", "*+json", "*+xml",
	"application/json", "application/javascript", "application/xml", "application/wasm",
}

// Compress compresses response bodies with gzip, or one of Codings, for clients that accept it (RFC
// 9110 section 12.5.3). It does not compress a body that is small, already encoded, or would not
// become smaller. Nor does it compress a partial response (206), a response with Cache-Control:
// no-transform, and a response with Content-Digest or Repr-Digest (RFC 9530), which are digests of the
// original bytes. Whole and partial responses that depend on Accept-Encoding get Vary, compressed or
// not. A strong ETag becomes weak, since the bytes change. Accept-Ranges becomes none, since ranges
// count bytes of the plain body.
//
// Streams, events, files and long responses of standard handlers are compressed as they are sent,
// and the client can decode all flushed data at once. A stream holds a compressor only between the
// first byte after a flush and the next flush, so each piece is compressed independently. Events
// smaller than MinSize are not compressed.
//
// Put Compress before ETag, so that the tag is computed from the plain body. Do not compress responses
// that contain a secret beside data that an attacker can choose (the BREACH attack). Compress panics
// for an invalid setting.
func Compress(c CompressConfig) dunlin.Middleware {
	k := newCompressor(c)
	return func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			resp := next(r)
			if resp.Len() >= 0 {
				resp = k.compress(r, resp)
			}
			return ext.EncodeLater(resp, func(head dunlin.Response, size int64) (dunlin.Response, func(io.Writer) ext.BodyEncoder) {
				if head.Len() >= 0 {
					return k.compress(r, head), nil
				}
				return k.begin(r, head, size)
			})
		}
	}
}

// A compressor is a CompressConfig in use.
type compressor struct {
	CompressConfig
	streaming []*Coding    // the codings with Begin
	running   atomic.Int64 // number of streams with a compressor
	buffers   sync.Pool    // of *[]byte
}

func newCompressor(c CompressConfig) *compressor {
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
	k := &compressor{CompressConfig: c}
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

// compress returns a complete response, compressed if the client accepts it.
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
		return weaken(resp) // the ETag of a compressed 200 is weak, too
	}
	packed := k.pack(coding, resp.Body())
	if packed == nil {
		return resp
	}
	return encodedBy(coding, resp.WithBody(packed))
}

// begin decides whether to compress a stream.
func (k *compressor) begin(r *dunlin.Request, head dunlin.Response, size int64) (dunlin.Response, func(io.Writer) ext.BodyEncoder) {
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
	return encodedBy(coding, head), func(w io.Writer) ext.BodyEncoder {
		return &piecewise{k: k, coder: coding.Begin(w)}
	}
}

// encodedBy sets the headers for a body in a coding.
func encodedBy(coding *Coding, resp dunlin.Response) dunlin.Response {
	if resp.Get("Accept-Ranges") != "" {
		resp = resp.Header("Accept-Ranges", "none")
	}
	return weaken(resp.Header("Content-Encoding", coding.Name))
}

// lengthless is the encoder function of a response to HEAD if the response to GET is compressed as a
// whole, by a coding without Begin. It is not called. Because begin does not return nil, the response
// to HEAD does not have the length of the plain body (RFC 9110 section 8.6).
func lengthless(io.Writer) ext.BodyEncoder { return nil }

// left returns a response that is not compressed. A partial response, and a 304 to a client that
// may have a compressed body, get the Vary of the whole response (RFC 9110 sections 15.3.7 and
// 15.4.5). A 304 gets a weak ETag if the client sent a weak ETag.
func (k *compressor) left(r *dunlin.Request, resp dunlin.Response) dunlin.Response {
	switch resp.StatusCode() {
	case http.StatusPartialContent:
		if resp.Get("Content-Encoding") != "" || untouchable(resp) || !k.coversType(resp) {
			return resp
		}
	case http.StatusNotModified: // a 304 does not state the media type of the whole response
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

// keptPack is the largest buffer that the pool keeps, in bytes.
const keptPack = 1 << 20

// pack returns body compressed, in new memory, or nil if it would not become smaller.
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

// piecewise encodes a stream. Small pieces, and pieces for which no compressor is free, are written
// uncompressed in the format of the coding.
type piecewise struct {
	k        *compressor
	coder    StreamCoder
	has      bool   // holds a compressor
	gathered []byte // the current piece, while it is small
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

// plain writes the gathered data uncompressed.
func (s *piecewise) plain() error {
	gathered := s.gathered
	s.gathered = nil
	if len(gathered) == 0 {
		return nil
	}
	return s.coder.Plain(gathered)
}

// leave releases the compressor, if there is one.
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
		_ = s.coder.Close() // fails, too
		return err
	}
	return s.coder.Close()
}

// covers reports whether to compress a response of size bytes (-1: unknown).
func (c *CompressConfig) covers(resp dunlin.Response, size int64) bool {
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

// coversType reports whether the response has a media type to compress. It returns true for a response
// with several ranges, whose own media type is unknown.
func (c *CompressConfig) coversType(resp dunlin.Response) bool {
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

// matches reports whether a media type matches want, which may be "text/*" or "*+json".
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

// varies reports whether Vary already names Accept-Encoding.
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

// untouchable reports whether Cache-Control has no-transform (RFC 9111 section 5.2.2.6).
func untouchable(resp dunlin.Response) bool {
	for name, value := range resp.Headers() {
		if name == "Cache-Control" && slices.ContainsFunc(strings.Split(value, ","), func(directive string) bool {
			return strings.EqualFold(strings.TrimSpace(directive), "no-transform")
		}) {
			return true
		}
	}
	return false
}
