//go:build linux

package loophttp_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/suite"
)

// A handler that stores the pieces it reads gets pieces as large as possible, and no bytes of the next request.
func TestChunkedBodyIsReadInLargePieces(t *testing.T) {
	const size, buffer = 96 << 10, 32 << 10 // a socket buffers all of it
	for _, chunk := range []int{buffer, 1000} {
		t.Run(fmt.Sprint("chunks of ", chunk), func(t *testing.T) {
			begun, sent := make(chan struct{}), make(chan struct{})
			server := startPieces(t, func(app *dunlin.App) {
				app.Get("/probe", suite.Text("probe"))
				app.Mount("/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					close(begun)
					<-sent
					buf, total, reads := make([]byte, buffer), 0, 0
					for {
						n, err := r.Body.Read(buf)
						total += n
						if err != nil {
							_, _ = fmt.Fprintf(w, "%d bytes, %v, few reads %v", total, err, reads <= size/buffer+3)
							return
						}
						reads++
					}
				}))
			})
			conn, err := net.Dial("unix", server.path)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if err := conn.SetDeadline(time.Now().Add(suite.Patience)); err != nil {
				t.Fatal(err)
			}
			suite.Send(t, conn, suite.Request("POST /", "Transfer-Encoding: chunked", "Expect: 100-continue"))
			<-begun // before its body
			var body bytes.Buffer
			for left := size; left > 0; left -= chunk {
				n := min(left, chunk)
				fmt.Fprintf(&body, "%x\r\n%s\r\n", n, strings.Repeat("x", n))
			}
			body.WriteString("0\r\nX-Sum: 1\r\n\r\n" + suite.Request("GET /probe", "Connection: close"))
			for body.Len() > 0 { // in pieces that need little socket memory
				suite.Send(t, conn, string(body.Next(buffer)))
			}
			close(sent)
			answer, err := io.ReadAll(conn)
			want := fmt.Sprintf("%d bytes, EOF, few reads true", size)
			if err != nil || !bytes.Contains(answer, []byte(want)) || !bytes.HasSuffix(answer, []byte("probe")) {
				t.Errorf("got %q, %v, want %s, and the answer to the next request", answer, err, want)
			}
		})
	}
}
