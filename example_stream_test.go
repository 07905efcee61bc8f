package dunlin_test

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing/fstest"
	"time"

	"github.com/dunlinhttp/dunlin"
)

func ExampleStream() {
	app := quiet()
	app.Get("/numbers", func(*dunlin.Request) dunlin.Response {
		return dunlin.Stream("text/plain; charset=utf-8", func(w io.Writer) error {
			for n := range 3 {
				if _, err := fmt.Fprintln(w, n); err != nil {
					return err // the client has gone
				}
			}
			return nil
		})
	})
	print(app, "GET", "/numbers")
	// Output:
	// 200 text/plain; charset=utf-8
	// 0
	// 1
	// 2
}

func ExampleSSE() {
	app := quiet()
	news := make(chan string, 1)
	news <- "the duck has landed"
	close(news)
	app.Get("/news", func(*dunlin.Request) dunlin.Response {
		return dunlin.SSE(func(e *dunlin.Events) error {
			for {
				select {
				case text, more := <-news:
					if !more {
						return nil
					}
					if err := e.Send(dunlin.Event{Type: "news", Data: text}); err != nil {
						return err
					}
				case <-e.Done(): // the client has gone, or the server is about to stop
					return nil
				}
			}
		})
	})
	print(app, "GET", "/news")
	// Output:
	// 200 text/event-stream
	// event: news
	// data: the duck has landed
}

func ExampleFiles() {
	app := quiet()
	public := fstest.MapFS{"hello.txt": {Data: []byte("Hello, World!")}} // or os.DirFS, or an embed.FS
	app.Get("/static/{path...}", dunlin.Files(public))
	print(app, "GET", "/static/hello.txt")
	print(app, "GET", "/static/hello.txt", "Range", "bytes=7-11")
	// Output:
	// 200 text/plain; charset=utf-8
	// Hello, World!
	// 206 text/plain; charset=utf-8
	// World
}

func ExampleRequest_Parts() {
	app := quiet()
	app.Post("/upload", func(r *dunlin.Request) dunlin.Response {
		var report strings.Builder
		for part, err := range r.Parts() {
			if err != nil {
				return dunlin.Error(err)
			}
			n, err := io.Copy(io.Discard, part) // to where the file belongs
			if err != nil {
				return dunlin.Error(err)
			}
			fmt.Fprintf(&report, "%s: %d bytes of %q\n", part.FormName(), n, part.FileName())
		}
		return dunlin.Text(report.String())
	})

	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	file, _ := form.CreateFormFile("picture", "duck.png")
	_, _ = io.WriteString(file, "not really a picture")
	_ = form.Close()
	print(app, "POST", "/upload", "Content-Type", form.FormDataContentType(), body.String())
	// Output:
	// 200 text/plain; charset=utf-8
	// picture: 20 bytes of "duck.png"
}

func ExampleGroup_UseStd() {
	app := quiet()
	app.UseStd(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Frame-Options", "DENY")
			next.ServeHTTP(w, r)
		})
	})
	app.Get("/", func(*dunlin.Request) dunlin.Response { return dunlin.Text("Hello, World!") })
	w := do(app, "GET", "/")
	fmt.Println(w.Code, w.Header().Get("X-Frame-Options"), w.Body)
	// Output: 200 DENY Hello, World!
}

func ExampleGroup_WithTimeout() {
	app := quiet()
	released := make(chan struct{})
	reports := app.Group("/reports").WithTimeout(time.Millisecond) // ordinarily seconds
	reports.Get("/yearly", func(r *dunlin.Request) dunlin.Response {
		<-released // slow code; code that uses r.Context() returns in time
		return dunlin.Text("too late")
	})
	print(app, "GET", "/reports/yearly")
	close(released)
	// Output:
	// 503 application/problem+json
	// {"title":"Service Unavailable","status":503,"detail":"the request took too long"}
}
