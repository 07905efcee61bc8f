package typed_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/typed"
)

// Files must have a listed type, by their header and by their content.
func TestFileContent(t *testing.T) {
	const (
		jpeg = "\xff\xd8\xff\xe0rest"
		page = "<!DOCTYPE html><script>alert(1)</script>"
	)
	type files struct {
		Image typed.Optional[typed.File] `form:"image" contentType:"image/*"`
		PNG   typed.Optional[typed.File] `form:"png" contentType:"Image/PNG"`
		Table typed.Optional[typed.File] `form:"table" contentType:"text/csv, application/json"`
		Both  []typed.File               `form:"both" contentType:"image/*, image/svg+xml"`
		Any   typed.Optional[typed.File] `form:"any" contentType:"*/*"`
	}
	dunlintest.OnEngines(t, dunlin.Config{}, func(t *testing.T, app *dunlin.App) {
		sink[files](app, "POST", "/")
		addr := dunlintest.Serve(t, app)
		for _, c := range []struct{ field, want string }{ // "" for 204
			{"image@a;image/png=" + pngSignature, ""},
			{"image@a;image/jpg=" + jpeg, ""},
			{"image@a;image/png=" + jpeg, ""},
			{"image@a;IMAGE/GIF=GIF89a", ""},
			{"image@a;image/png=" + page, "form image contentMediaType image/*"},
			{"image@a;image/png=text", "form image contentMediaType image/*"},
			{"image@a;image/png=", "form image contentMediaType image/*"},
			{"image@a;image/svg+xml=<svg></svg>", "form image contentMediaType image/*"},
			{"image@a;text/html=" + pngSignature, "form image contentMediaType image/*"},
			{"image@a;=" + pngSignature, "form image contentMediaType image/*"},
			{"png@a;image/png=" + pngSignature, ""},
			{"png@a;image/png=" + jpeg, "form png contentMediaType Image/PNG"},
			{"table@a;text/csv=a,b", ""},
			{"table@a;text/csv=\x00\x01", ""},
			{"table@a;text/csv=" + page, "form table contentMediaType text/csv, application/json"},
			{"table@a;text/csv=" + jpeg, "form table contentMediaType text/csv, application/json"},
			{"both@a;image/svg+xml=<svg></svg>", ""},
			{"both@a;image/avif=text", "form both #/0 contentMediaType image/*, image/svg+xml"},
			{"any@a;a/b=" + page, ""},
		} {
			kind, body := form(t, c.field)
			a := sent(t, "POST", "http://"+addr+"/", body, "Content-Type: "+kind)
			switch {
			case c.want != "":
				expectInvalid(t, a, http.StatusUnsupportedMediaType, c.want)
			case a.status != http.StatusNoContent:
				t.Errorf("%q: got %d %s", c.field, a.status, a.body)
			}
		}
	})
	type noType struct {
		File typed.File `form:"file" contentType:"image"`
	}
	if got := panics(func() { sink[noType](quiet(), "POST", "/") }); !strings.Contains(got, `contentType:"image": it must list media types`) {
		t.Errorf("tag without a media type: got panic %q", got)
	}
}

func TestRawRange(t *testing.T) {
	app := quiet()
	sink[struct {
		Body typed.Raw `contentType:"image/*"`
	}](app, "POST", "/")
	expect(t, ask(t, app, "POST /", "Content-Type: image/png", "", "12345"), 204, "")
	if a := ask(t, app, "POST /", "Content-Type: text/png", "", "12345"); a.status != http.StatusUnsupportedMediaType || !strings.Contains(a.body, "image/*") {
		t.Errorf("got %d %s", a.status, a.body)
	}
}
