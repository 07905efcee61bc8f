package suite

import (
	"bufio"
	"io"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// Requests that a proxy may interpret differently than the server. The loop engine refuses all of them; docs/ENGINES.md lists
// those that net/http accepts.
func TestInputsAcceptedByNetHTTP(t *testing.T) {
	chunked := func(rest string, headers ...string) string {
		return Request("POST /echo", append([]string{"Transfer-Encoding: chunked"}, headers...)...) + rest
	}
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := parityApp(t, engine)
		for _, c := range []struct{ name, send, loop, std string }{
			{"Content-Length beside Transfer-Encoding", chunked("1\r\na\r\n0\r\n\r\n", "Content-Length: 6"), "400", "200"},
			{"Content-Length twice, equal", Request("POST /echo", "Content-Length: 1", "Content-Length: 1") + "a", "400", "200"},
			{"Content-Length as a list", Request("POST /echo", "Content-Length: 1, 1") + "a", "400", "400"},
			{"Transfer-Encoding twice", chunked("1\r\na\r\n0\r\n\r\n", "Transfer-Encoding: chunked"), "400", "501"},
			{"a folded line", Request("GET /text", "X: a\r\n b"), "400", "200"},
			{"a bare LF", "GET /text HTTP/1.1\nHost: h.example\n\n", "400", "200"},
			{"a space after the chunk size", chunked("1 \r\na\r\n0\r\n\r\n"), "400", "200"},
			{"Content-Length in trailers", chunked("1\r\na\r\n0\r\nContent-Length: 5\r\n\r\n"), "400", "200"},
			{"a folded trailer", chunked("1\r\na\r\n0\r\nX: a\r\n b\r\n\r\n"), "400", "200"},
			{"Host with a port that is too large", "GET /text HTTP/1.1\r\nHost: a:99999\r\n\r\n", "400", "200"},
			{"Host with two ports", "GET /text HTTP/1.1\r\nHost: a:80:80\r\n\r\n", "400", "200"},
			{"Host with text after an IPv6 address", "GET /text HTTP/1.1\r\nHost: [::1]x\r\n\r\n", "400", "200"},
			{"an absolute target of another scheme", "GET ftp://h.example/text HTTP/1.1\r\nHost: h.example\r\n\r\n", "400", "200"},
			{"an absolute target with a user", "GET http://u@h.example/text HTTP/1.1\r\nHost: h.example\r\n\r\n", "400", "200"},
			{"a fragment in the target", Request("GET /text#a"), "400", "404"},
			{"UTF-8 in the target", Request("GET /text?ä"), "400", "200"},
			{"a CR within a line", Request("GET /text", "X: a\rb"), "400", "400"},
			{"NUL in a value", Request("GET /text", "X: a\x00b"), "400", "400"},
			{"a space before the colon", Request("GET /text", "X : b"), "400", "400"},
		} {
			t.Run(c.name, func(t *testing.T) {
				want := c.loop
				if engine == dunlin.EngineStd {
					want = c.std
				}
				conn := Dial(t, addr)
				_, _ = io.WriteString(conn, c.send)
				line, err := bufio.NewReader(conn).ReadString('\n')
				if err != nil || len(line) < 12 || line[9:12] != want {
					t.Errorf("answered with %q, %v, want %s", line, err, want)
				}
			})
		}
	})
}
