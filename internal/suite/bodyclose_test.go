package suite

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// A standard handler that has closed the body cannot read more of it. The connection continues with the next request.
func TestStdBodyIsClosed(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		closes := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			first := make([]byte, 2)
			_, err := io.ReadFull(r.Body, first)
			closed := errors.Join(r.Body.Close(), r.Body.Close())
			n, after := r.Body.Read(make([]byte, 10))
			_, _ = fmt.Fprintf(w, "%s %v %v, %d %v", first, err, closed, n, errors.Is(after, http.ErrBodyReadAfterClose))
		})
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/probe", Text("probe"))
			app.Post("/std", dunlin.FromStd(closes))
			app.Post("/bounded", dunlin.FromStd(closes)).MaxBody(1 << 20)
			app.Post("/loaded", dunlin.FromStd(closes), func(next dunlin.Action) dunlin.Action {
				return func(r *dunlin.Request) dunlin.Response {
					if _, err := r.Bytes(); err != nil {
						return dunlin.Error(err)
					}
					next(r) // the second middleware reads the closed body
					return next(r)
				}
			})
		})
		for _, path := range []string{"/std", "/bounded", "/loaded"} {
			for _, body := range []string{"body", strings.Repeat("body", 10_000)} {
				chunked := Request("POST "+path, "Transfer-Encoding: chunked") + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
				for _, got := range Exchange(t, addr, false, Request("POST "+path, "", body), Request("POST "+path, "", body)) {
					if !strings.HasSuffix(got, "\n\nbo <nil> <nil>, 0 true") {
						t.Errorf("%s: got %q", path, got)
					}
				}
				// The length of a chunked body that has not arrived is unknown, so the response may announce the end of the
				// connection.
				conn := Dial(t, addr)
				if _, err := io.WriteString(conn, chunked); err != nil {
					t.Fatal(err)
				}
				got, err := ReadAnswer(bufio.NewReader(conn), http.MethodPost)
				if err != nil || !strings.HasSuffix(got, "\n\nbo <nil> <nil>, 0 true") {
					t.Errorf("%s in chunks: got %q, %v", path, got, err)
				}
				told := strings.Contains(got, "\nConnection: close\n")
				if told && (path == "/loaded" || len(body) < 10) {
					t.Errorf("%s in chunks, all of them here: got %q", path, got)
				}
				ExchangeOn(t, conn, told)
			}
		}
	})
}
