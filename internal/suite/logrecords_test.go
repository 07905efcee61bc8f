package suite

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// The length of a client's path does not determine the length of log records, also where errors and panics quote the path.
func TestLogRecordsTruncateRequestData(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, logs := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/probe", Text("probe"))
			app.Get("/error/{path...}", func(r *dunlin.Request) dunlin.Response {
				return dunlin.Error(errors.New("cannot find " + r.Path()))
			})
			app.Get("/panic/{path...}", func(r *dunlin.Request) dunlin.Response { panic(errors.New("cannot find " + r.Path())) })
			app.Get("/stream/{path...}", func(r *dunlin.Request) dunlin.Response {
				return dunlin.Stream("text/plain", func(io.Writer) error { return errors.New("cannot find " + r.Path()) })
			})
		})
		for _, path := range []string{"/error/", "/panic/", "/stream/"} {
			_ = Exchange(t, addr, false, Request("GET "+path+strings.Repeat("y", 20_000)))
			Soon(t, "the failure is logged", func() bool { return strings.Contains(logs.String(), "cannot find "+path+"yyy") })
		}
		if strings.Contains(logs.String(), strings.Repeat("y", 513)) {
			t.Errorf("a record is too long: got %s", Clip(logs.String()))
		}
	})
}

// An error whose Error method panics is logged as a panic.
func TestPanickingErrorIsLogged(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, logs := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/probe", Text("probe"))
			app.Get("/", func(*dunlin.Request) dunlin.Response { return dunlin.Error((*nilError)(nil)) })
		})
		if got := Exchange(t, addr, false, Request("GET /"))[0]; !strings.Contains(got, "500") {
			t.Errorf("got %s", got)
		}
		WantLogged(t, logs, "request failed")
	})
}

type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }
