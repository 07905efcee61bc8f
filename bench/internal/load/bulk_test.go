package load_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/bench/internal/load"
)

func TestBulk(t *testing.T) {
	const n = 200_000 // less than net/http reads of an unread body
	lost := 0         // bytes that the server drops
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/none":
			http.NotFound(w, r)
			return
		case "/words":
			fmt.Fprint(w, "many")
			return
		}
		if r.Method == http.MethodPost {
			got, _ := io.Copy(io.Discard, r.Body)
			fmt.Fprint(w, got-int64(lost))
			return
		}
		want, _ := strconv.Atoi(r.URL.Query().Get("bytes"))
		_, _ = w.Write(make([]byte, want-lost))
	}))
	defer server.Close()
	for _, up := range []bool{false, true} {
		b := load.Bulk{Addr: strings.TrimPrefix(server.URL, "https://"), Path: "/bulk", Bytes: n, Up: up, TLS: true}
		lost = 0
		if err := b.Run(t.Context()); err != nil {
			t.Errorf("up %v: %v", up, err)
		}
		lost = 1
		if err := b.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "199999 bytes, want 200000") {
			t.Errorf("up %v: missing byte: got error %v", up, err)
		}
		b.Path = "/none"
		if err := b.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "status 404") {
			t.Errorf("up %v: status 404: got error %v", up, err)
		}
		if b.Path = "/words"; b.Run(t.Context()) == nil {
			t.Errorf("up %v: text instead of a number of bytes: got no error", up)
		}
	}
}
