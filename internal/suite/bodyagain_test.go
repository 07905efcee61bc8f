package suite

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// A second reader of the body continues where the first one stopped, whether the body was complete or not.
func TestBodyReaderContinues(t *testing.T) {
	body := func(r *dunlin.Request) ([]byte, error) { return io.ReadAll(r.Body()) }
	std := func(r *dunlin.Request) ([]byte, error) { return io.ReadAll(r.Std().Body) }
	rests := map[string]func(r *dunlin.Request) ([]byte, error){"body": body, "bytes": (*dunlin.Request).Bytes, "std": std}
	OnEngines(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			for name, rest := range rests {
				for begin, first := range map[string]func(r *dunlin.Request) io.Reader{
					"body": (*dunlin.Request).Body,
					"std":  func(r *dunlin.Request) io.Reader { return r.Std().Body },
				} {
					app.Post("/"+begin+"/"+name, func(r *dunlin.Request) dunlin.Response {
						one, two := make([]byte, 1), make([]byte, 1)
						if _, err := io.ReadFull(first(r), one); err != nil {
							return dunlin.Error(err)
						}
						if _, err := io.ReadFull(r.Body(), two); err != nil {
							return dunlin.Error(err)
						}
						three, err := rest(r)
						if err != nil {
							return dunlin.Error(err)
						}
						four, err := body(r) // after Bytes: the same bytes again
						return dunlin.Text(fmt.Sprint(string(one), " ", string(two), " ", len(three), " ", strings.Trim(string(three), "b"), " ", len(four), " ", err))
					})
				}
			}
		})
		client := Client(t, nil, HTTP1)
		for _, begin := range []string{"body", "std"} {
			for name := range rests {
				for _, size := range []int{1, 5000, 300_000} {
					for _, length := range []int64{-1, int64(size) + 3} {
						req, err := http.NewRequest(http.MethodPost, "http://"+addr+"/"+begin+"/"+name, strings.NewReader("ab"+strings.Repeat("b", size)+"c"))
						if err != nil {
							t.Fatal(err)
						}
						req.ContentLength = length
						resp, err := client.Do(req)
						if err != nil {
							t.Fatal(err)
						}
						got, err := io.ReadAll(resp.Body)
						_ = resp.Body.Close()
						left := 0
						if name == "bytes" {
							left = size + 1
						}
						if want := fmt.Sprint("a b ", size+1, " c ", left, " <nil>"); err != nil || string(got) != want {
							t.Errorf("%s then %s, %d bytes, length %d: got %.60q, %v, want %q", begin, name, size, length, got, err, want)
						}
					}
				}
			}
		}
	})
}
