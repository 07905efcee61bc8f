package load

import "testing"

// Answers are followed to their end however they are cut into pieces.
func TestAnswer(t *testing.T) {
	for _, c := range []struct {
		name, bytes string
		status      int
		close       bool
	}{
		{"length", "HTTP/1.1 200 OK\r\ncontent-length: 12\r\nX: y\r\n\r\nHello\r\n\r\nyou", 200, false},
		{"empty", "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", 503, true},
		{"none", "HTTP/1.1 204 No Content\r\n\r\n", 204, false},
		{"chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n", 200, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for size := 1; size <= len(c.bytes); size++ {
				var a answer
				kept, rest := "", c.bytes
				for rest != "" {
					if a.done() {
						t.Fatalf("pieces of %d: complete before %q", size, rest)
					}
					n := min(size, len(rest))
					kept, rest = kept+rest[:n], rest[n:]
					used, err := a.feed([]byte(kept))
					if err != nil {
						t.Fatalf("pieces of %d, before %q: %v", size, rest, err)
					}
					kept = kept[used:]
				}
				if !a.done() || kept != "" || a.status != c.status || a.close != c.close {
					t.Fatalf("pieces of %d: got %+v, %q left over", size, a, kept)
				}
			}
		})
	}
}

func TestAnswerRefuses(t *testing.T) {
	for _, bytes := range []string{
		"HTTP/1.0 200 OK\r\n\r\n",
		"HTTP/1.1 abc\r\n\r\n",
		"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
	} {
		var a answer
		if _, err := a.feed([]byte(bytes)); err == nil {
			t.Errorf("%q: got %+v, want an error", bytes, a)
		}
	}
}
