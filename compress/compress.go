// Package compress provides codings for the middleware Compress and Decompress: zstd and gzip by
// klauspost/compress, and Brotli by andybalholm/brotli. It is a separate module.
//
//	app.Use(middleware.Compress(middleware.CompressConfig{Codings: compress.Codings()}))
//	app.Use(middleware.Decompress(middleware.DecompressConfig{Codings: compress.Codings()}))
//
// Streams are sent in zstd or gzip, never in Brotli, because the middleware releases the compressor
// between the pieces of a stream, and a Brotli stream cannot continue with another compressor.
package compress

import (
	"bytes"
	"fmt"
	"io"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"

	"github.com/dunlinhttp/dunlin/middleware"
)

// Codings returns zstd, br and gzip, in order of preference, with levels for responses that are
// generated for each request.
func Codings() []*middleware.Coding {
	return []*middleware.Coding{Zstd(3), Brotli(4), Gzip(5)}
}

// Gzip returns the coding gzip with a level from 1 (fastest) to 9 (smallest). It panics for other
// levels.
func Gzip(level int) *middleware.Coding {
	if level < 1 || level > 9 {
		panic(fmt.Sprintf("compress: Gzip(%d): the level must be from 1 to 9", level))
	}
	pool := &sync.Pool{New: func() any {
		w, err := gzip.NewWriterLevel(nil, level)
		if err != nil {
			panic("compress: gzip: " + err.Error()) // cannot happen: the level is valid
		}
		return w
	}}
	c := middleware.Gzip(level)
	c.Append = func(dst, body []byte) []byte {
		w := pool.Get().(*gzip.Writer)
		defer pool.Put(w)
		return appendBy(w, dst, body)
	}
	return c
}

// Brotli returns the coding br (RFC 7932) with a quality from 0 (fastest) to 11 (smallest). It does
// not support streams. It panics for other qualities.
func Brotli(quality int) *middleware.Coding {
	if quality < brotli.BestSpeed || quality > brotli.BestCompression {
		panic(fmt.Sprintf("compress: Brotli(%d): the quality must be from %d to %d", quality, brotli.BestSpeed, brotli.BestCompression))
	}
	pool := &sync.Pool{New: func() any { return brotli.NewWriterLevel(nil, quality) }}
	return &middleware.Coding{
		Name: "br",
		Append: func(dst, body []byte) []byte {
			w := pool.Get().(*brotli.Writer)
			defer pool.Put(w)
			return appendBy(w, dst, body)
		},
		Open: func(src io.Reader) (io.Reader, error) { return brotli.NewReader(src), nil },
	}
}

// appendBy appends the compressed body to dst.
func appendBy(w interface {
	io.WriteCloser
	Reset(io.Writer)
}, dst, body []byte) []byte {
	buf := bytes.NewBuffer(dst)
	w.Reset(buf)
	_, _ = w.Write(body) // a bytes.Buffer returns no error
	_ = w.Close()
	w.Reset(io.Discard)
	return buf.Bytes()
}
