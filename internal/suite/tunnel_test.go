package suite

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// A client may treat a 2xx response to CONNECT, or a 101, as the start of another protocol. The server parses no request after
// it.
func TestTunnelIsNotParsedAsHTTP(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/probe", Text("probe"))
			app.Mount("/switch", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Connection", "Upgrade")
				w.Header().Set("Upgrade", "own")
				w.WriteHeader(http.StatusSwitchingProtocols) // and no Hijack
			}))
			app.Mount("/", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		})
		for _, head := range []string{
			"CONNECT a.example:80 HTTP/1.1\r\nHost: a.example:80\r\n\r\n",
			Request("GET /switch", "Connection: Upgrade", "Upgrade: own"),
		} {
			conn := Dial(t, addr)
			Send(t, conn, head)
			Send(t, conn, Request("GET /probe")+Request("GET /probe"))
			got, _ := io.ReadAll(conn) // a reset is an end, too
			if strings.Contains(string(got), "probe") || strings.Count(string(got), "HTTP/1.1 ") > 1 {
				t.Errorf("%q is answered by\n%s", head, got)
			}
		}
	})
}
