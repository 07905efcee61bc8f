package http1_test

import (
	"testing"

	"github.com/dunlinhttp/dunlin/internal/http1"
)

func TestParsePlain(t *testing.T) {
	const head = "GET /plaintext?a=1 HTTP/1.1\r\nHost: 127.0.0.1:3000\r\nX-A:  b \r\n\r\n"
	lim := http1.DefaultLimits()
	var h http1.Head
	n, err := h.Parse([]byte(head+"rest"), &lim)
	if n != len(head) || err != nil {
		t.Fatalf("n = %d, err = %v; want %d, nil", n, err, len(head))
	}
	if h.Method != http1.MethodGet || string(h.Path()) != "/plaintext" || string(h.Query()) != "a=1" ||
		string(h.Host()) != "127.0.0.1:3000" || !h.KeepAlive || h.ContentLength != -1 {
		t.Errorf("got %+v", &h)
	}
	if v, ok := h.Get("x-a"); !ok || string(v) != "b" {
		t.Errorf("X-A = %q, %v", v, ok)
	}
}
