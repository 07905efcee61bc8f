package http1_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/http1"
)

const plainHead = "GET /plaintext HTTP/1.1\r\nHost: 127.0.0.1:3000\r\n\r\n"

// browserHead is a browser's request for a page of an API: 12 fields.
const browserHead = "GET /api/v1/users/0190163d-8694-739b-aea5-966c26f8ad90?expand=groups HTTP/1.1\r\n" +
	"Host: api.example.com\r\n" +
	"Connection: keep-alive\r\n" +
	"User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36\r\n" +
	"Accept: application/json, text/plain, */*\r\n" +
	"Accept-Language: en-US,en;q=0.9\r\n" +
	"Accept-Encoding: gzip, deflate, br\r\n" +
	"Referer: https://app.example.com/users\r\n" +
	"Cookie: session=0123456789abcdef\r\n" +
	"Sec-Fetch-Dest: empty\r\n" +
	"Sec-Fetch-Mode: cors\r\n" +
	"Sec-Fetch-Site: same-site\r\n" +
	"Cache-Control: no-cache\r\n" +
	"\r\n"

func BenchmarkParse(b *testing.B) {
	for _, c := range []struct{ name, head string }{{"plain", plainHead}, {"browser", browserHead}} {
		b.Run(c.name, func(b *testing.B) {
			buf := []byte(c.head)
			lim := http1.DefaultLimits()
			var h http1.Head
			b.ReportAllocs()
			b.SetBytes(int64(len(buf)))
			for b.Loop() {
				if n, err := h.Parse(buf, &lim); n != len(buf) || err != nil {
					b.Fatal(n, err)
				}
			}
		})
	}
}

// BenchmarkParseByteByByte simulates the slowest client: the time per byte must not depend on the length of the head.
func BenchmarkParseByteByByte(b *testing.B) {
	for _, size := range []int{1 << 10, 4 << 10, 15 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			buf := []byte("GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", size) + "\r\n\r\n")
			lim := http1.DefaultLimits()
			var h http1.Head
			b.ReportAllocs()
			b.SetBytes(int64(len(buf)))
			for b.Loop() {
				for i := range buf {
					if _, err := h.Parse(buf[:i+1], &lim); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

func BenchmarkGet(b *testing.B) {
	lim := http1.DefaultLimits()
	var h http1.Head
	if _, err := h.Parse([]byte(browserHead), &lim); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := h.Get("Cookie"); !ok {
			b.Fatal("no cookie")
		}
	}
}

func BenchmarkResponseHead(b *testing.B) {
	const contentType = "Content-Type: text/plain; charset=utf-8\r\n"
	buf := make([]byte, 0, 256)
	var d http1.DateCache
	b.ReportAllocs()
	for b.Loop() {
		buf = http1.AppendStatusLine(buf[:0], 200)
		buf = append(buf, contentType...)
		buf = http1.AppendContentLength(buf, 13)
		buf = d.AppendField(buf, 1_700_000_000)
		buf = append(buf, http1.CRLF...)
	}
}

func BenchmarkChunked(b *testing.B) {
	var src []byte
	data := make([]byte, 4000)
	for range 16 {
		src = http1.AppendChunkHeader(src, len(data))
		src = append(append(src, data...), http1.CRLF...)
	}
	src = append(src, http1.EndOfChunks...)
	lim := http1.DefaultLimits()
	var c http1.Chunked
	b.ReportAllocs()
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		c.Reset(&lim, -1)
		for at := 0; !c.Done(); {
			_, n, err := c.Next(src[at:])
			if err != nil {
				b.Fatal(err)
			}
			at += n
		}
	}
}
