package jsonwire_test

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/jsonwire"
)

// benchmark compares the encoding of v with json.Encoder, without the latter's allocation for the result.
func benchmark[T any](b *testing.B, v T) {
	b.Run("jsonwire", func(b *testing.B) {
		b.ReportAllocs()
		var buf []byte
		for b.Loop() {
			var err error
			if buf, err = jsonwire.Append(buf[:0], &v, jsonwire.Options{}); err != nil {
				b.Fatal(err)
			}
		}
		b.SetBytes(int64(len(buf)))
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.ReportAllocs()
		var buf bytes.Buffer
		for b.Loop() {
			buf.Reset()
			if err := json.NewEncoder(&buf).Encode(&v); err != nil {
				b.Fatal(err)
			}
		}
		b.SetBytes(int64(buf.Len()))
	})
}

func BenchmarkUsers(b *testing.B) { benchmark(b, users(1000)) }

func BenchmarkHello(b *testing.B) {
	type hello struct{ Message string }
	b.Run("jsonwire", func(b *testing.B) {
		b.ReportAllocs()
		var buf []byte
		for b.Loop() {
			v := hello{"Hello World"}
			buf, _ = jsonwire.Append(buf[:0], &v, jsonwire.Options{})
			_, _ = io.Discard.Write(buf)
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			v := hello{"Hello World"}
			_ = json.NewEncoder(io.Discard).Encode(&v)
		}
	})
}

func BenchmarkUnmarshalled(b *testing.B) {
	var v any
	text := `{"id":1,"name":"é <b>","tags":["a","b"],"score":1.5,"nested":{"ok":true,"none":null,"list":[1,2,3]}}`
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		b.Fatal(err)
	}
	benchmark(b, v)
}

func BenchmarkMap(b *testing.B) {
	benchmark(b, map[string]int{"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6})
}

func BenchmarkFloats(b *testing.B) {
	benchmark(b, []float64{1, 2.5, 1e-7, 3.141592653589793, 1e22, -17})
}

func BenchmarkText(b *testing.B) {
	benchmark(b, []string{"Größe", "日本語のテキスト", "line one\nline \"two\"", "<p>a & b</p>"})
}

func BenchmarkRaw(b *testing.B) {
	benchmark(b, json.RawMessage(`{"id": 1, "name": "some text that is longer", "list": [1, 2, 3, {"a": null}]}`))
}

func BenchmarkMarshaler(b *testing.B) { benchmark(b, []valueText{{"a"}, {"b"}, {"c"}}) }
