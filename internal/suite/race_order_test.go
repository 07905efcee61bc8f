package suite

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// The client's actions before a request happen before the action, and the action's before its response happen before the client
// continues. The race detector knows this on the loop engine as it does on net/http. Nothing else orders the accesses to seen
// here, so the test shows little without the race detector.
func TestMessagesOrder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	large := strings.Repeat("x", 1<<20)
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		for name, answer := range map[string]func(*dunlin.Request) dunlin.Response{
			"short":  Text("short"),
			"long":   Text(large),
			"file":   func(*dunlin.Request) dunlin.Response { return dunlin.File(file) },
			"stream": func(*dunlin.Request) dunlin.Response { return dunlin.Stream("text/plain", streamTwo) },
			"std": dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, large)
			})),
		} {
			for _, body := range []string{"", "short", large} {
				t.Run(fmt.Sprintf("%s, %d bytes", name, len(body)), func(t *testing.T) {
					seen := 0
					addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
						app.Handle("*", "/", func(r *dunlin.Request) dunlin.Response {
							if _, err := r.Bytes(); err != nil {
								t.Error(err)
							}
							seen++
							return answer(r)
						})
					})
					client := &http.Client{Transport: NewTransport()}
					defer client.CloseIdleConnections()
					for i := range 3 {
						seen++
						resp, err := client.Post("http://"+addr+"/", "text/plain", strings.NewReader(body))
						if err != nil {
							t.Fatal(err)
						}
						_, err = io.Copy(io.Discard, resp.Body)
						_ = resp.Body.Close()
						if err != nil || seen != 2*(i+1) {
							t.Errorf("request %d: got %d, %v", i, seen, err)
						}
					}
				})
			}
		}
	})
}

func streamTwo(w io.Writer) error {
	_, _ = io.WriteString(w, "one")
	if err := dunlin.Flush(w); err != nil {
		return err
	}
	_, err := io.WriteString(w, "two")
	return err
}
