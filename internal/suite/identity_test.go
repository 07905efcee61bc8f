package suite

import (
	"bufio"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// No request has the identifier of another one, be it one that the server or the client has given, also not of one that was
// refused before its action: cut short, malformed, too large or over a limit.
func TestIdentifiersAreOfOneRequest(t *testing.T) {
	OnBothEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		var observed []string
		addr, _ := Start(t, dunlin.Config{Engine: engine, Logger: slog.New(slog.DiscardHandler), MaxBody: 1000, MaxHeaders: 20}, func(app *dunlin.App) {
			app.Policy(func(info *dunlin.AnswerInfo, resp dunlin.Response) dunlin.Response {
				if own := info.Header("X-Request-Id"); own != "" {
					info.SetID(own)
				}
				return resp.Header("X-Id", info.ID())
			})
			app.Get("/ok", Text("ok"))
			app.Post("/body", func(r *dunlin.Request) dunlin.Response {
				if _, err := r.Bytes(); err != nil {
					return dunlin.Error(err)
				}
				return dunlin.Empty()
			})
			app.Get("/panic", func(*dunlin.Request) dunlin.Response { panic("it") })
		})
		refused := []struct{ raw, own string }{
			{Request("GET /ok", "X: "+strings.Repeat("x", 70_000)), ""},
			{Request("GET /ok", strings.Repeat("A: b\r\n", 30)+"A: b"), ""},
			{Request("GET /ok", "no colon"), ""},
			{"GET /ok HTTP/1.1\r\n\r\n", ""}, // without Host
			{Request("POST /body", "X-Request-Id: too-large", "Content-Length: 2000"), "too-large"},
			{Request("POST /body", "X-Request-Id: cut", "Content-Length: 10") + "short", "cut"},
			{Request("POST /body", "X-Request-Id: chunk", "Transfer-Encoding: chunked") + "1x\r\n", "chunk"},
			{Request("GET /panic"), ""},
			{Request("GET /nowhere", "X-Request-Id: nowhere"), "nowhere"},
		}
		for range 3 {
			for _, c := range refused {
				for _, request := range []struct{ raw, own string }{c, {Request("GET /ok"), ""}} {
					conn := AskConn(t, addr, request.raw)
					if err := CloseWrite(conn); err != nil {
						t.Fatal(err)
					}
					resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
					if err != nil && engine == dunlin.EngineStd && len(request.raw) > 64<<10 {
						conn.Close() // net/http may end a connection on which more has come than it has read by a reset
						continue
					}
					if err != nil {
						t.Fatalf("%.60q: %v", request.raw, err)
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					conn.Close()
					switch id := resp.Header.Get("X-Id"); {
					case id == "" && engine == dunlin.EngineStd: // net/http has answered, unseen
					case request.own != "" && id != request.own:
						t.Errorf("%.60q: %q, want the client's %q", request.raw, id, request.own)
					case request.own == "":
						observed = append(observed, id)
					}
				}
			}
		}
		seen := map[string]bool{"": true}
		for _, id := range observed {
			if seen[id] || len(id) != 26 {
				t.Errorf("the identifier %q was another request's, or is none", id)
			}
			seen[id] = true
		}
	})
}
