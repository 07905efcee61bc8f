package typed_test

import (
	"bytes"
	"io"
	"log/slog"
	"mime/multipart"
	"net/textproto"
	"strconv"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/typed"
)

type login struct {
	Name string   `form:"name" minLength:"2"`
	Age  int      `form:"age" default:"7"`
	Tags []string `form:"tag"`
}

type upload struct {
	login
	Avatar typed.File   `form:"avatar" maxLength:"8" contentType:"image/png, image/jpeg"`
	Docs   []typed.File `form:"doc" maxItems:"2"`
}

// pngSignature is the first bytes of a PNG image.
const pngSignature = "\x89PNG\r\n\x1a\n"

// form writes a multipart body: "name=value", or "name@file.png;image/png=value".
func form(t *testing.T, fields ...string) (kind, body string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, f := range fields {
		name, value, _ := strings.Cut(f, "=")
		name, file, isFile := strings.Cut(name, "@")
		header := textproto.MIMEHeader{"Content-Disposition": {`form-data; name="` + name + `"`}}
		if isFile {
			file, media, _ := strings.Cut(file, ";")
			header.Set("Content-Disposition", `form-data; name="`+name+`"; filename="`+file+`"`)
			header.Set("Content-Type", media)
		}
		p, err := w.CreatePart(header)
		if err == nil {
			_, err = io.WriteString(p, value)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	return w.FormDataContentType(), b.String()
}

func TestForms(t *testing.T) {
	app := quiet()
	typed.Post(app, "/", func(_ *dunlin.Request, in login) (login, error) { return in, nil })
	expect(t, ask(t, app, "POST /", "Content-Type: application/x-www-form-urlencoded", "", "name=A+%26b&tag=x&tag=y"), 200,
		`{"Name":"A \u0026b","Age":7,"Tags":["x","y"]}`)
	kind, body := form(t, "name=multi\r\nline", "age=3", "other=ignored")
	expect(t, ask(t, app, "POST /", "Content-Type: "+kind, "", body), 200, `{"Name":"multi\r\nline","Age":3,"Tags":[]}`)
	expectViolations(t, ask(t, app, "POST /", "Content-Type: application/x-www-form-urlencoded", "", "name=a&age=x&age=y"),
		"form name minLength 2", "form age single")
	expectViolations(t, ask(t, app, "POST /"), "form name required")
	expectViolations(t, ask(t, app, "POST /", "Content-Type: application/x-www-form-urlencoded", "", "%zz"), "body # syntax")
	many := ask(t, app, "POST /", "Content-Type: application/x-www-form-urlencoded", "", "name=ab"+strings.Repeat("&tag=", 1000))
	if many.status != 413 || !strings.Contains(many.body, "limit of 1000") {
		t.Errorf("form with many fields: got %d %s", many.status, many.body)
	}
	if a := post(t, app, "/", "{}"); a.status != 415 {
		t.Errorf("JSON body: got status %d", a.status)
	}
}

// The app's setting bounds the number of fields of a form in any encoding.
func TestFormFields(t *testing.T) {
	app := dunlin.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler), Limits: dunlin.Limits{MaxFormFields: 3}})
	typed.Post(app, "/", func(_ *dunlin.Request, in login) (login, error) { return in, nil })
	const encoded = "Content-Type: application/x-www-form-urlencoded"
	three, threeBody := form(t, "name=ab", "tag=1", "tag=2")
	four, fourBody := form(t, "name=ab", "tag=1", "tag=2", "tag=3")
	for _, c := range []struct {
		kind, body string
		status     int
	}{
		{encoded, "name=ab&tag=1&tag=2", 200}, {encoded, "name=ab&tag=1&tag=2&tag=3", 413},
		{"Content-Type: " + three, threeBody, 200}, {"Content-Type: " + four, fourBody, 413},
	} {
		if a := ask(t, app, "POST /", c.kind, "", c.body); a.status != c.status {
			t.Errorf("%s: got %d %s", c.body, a.status, a.body)
		}
	}
}

// The name of a field may contain characters that browsers do not escape.
func TestFormNames(t *testing.T) {
	app := quiet()
	typed.Post(app, "/", func(_ *dunlin.Request, in struct {
		Name  string     `form:"é\\"`
		Quote string     `form:"ü\"x" default:"none"`
		File  typed.File `form:"file"`
	}) (string, error) {
		return in.Name + " " + in.Quote + " " + in.File.Name, nil
	})
	const head = "--b\r\nContent-Disposition: form-data; name="
	body := head + `"é\"` + "\r\n\r\nText\r\n" + head + `"ü\"x"` + "\r\n\r\nquoted\r\n" +
		head + `"file"; filename="ö\"` + "\r\n\r\ndata\r\n--b--"
	expect(t, ask(t, app, "POST /", "Content-Type: multipart/form-data; boundary=b", "", body), 200, `"Text quoted "`)
	body = strings.Replace(body, `filename="ö\"`, `filename="ö\"; x="y"`, 1)
	expect(t, ask(t, app, "POST /", "Content-Type: multipart/form-data; boundary=b", "", body), 200, `"Text quoted "`)
}

func TestFiles(t *testing.T) {
	app := quiet()
	typed.Post(app, "/", func(_ *dunlin.Request, in upload) (string, error) {
		s := in.Name + " " + in.Avatar.Name + " " + in.Avatar.ContentType + " " + strconv.Itoa(len(in.Avatar.Data))
		for _, f := range in.Docs {
			s += " " + f.Name + ":" + string(f.Data)
		}
		return s, nil
	})
	kind, body := form(t, "name=Ann", `avatar@C:\\me.png;image/png=`+pngSignature, "doc@a.txt;text/plain=", "doc@../b.txt;text/plain=B\r\n--")
	expect(t, ask(t, app, "POST /", "Content-Type: "+kind, "", body), 200, `"Ann me.png image/png 8 a.txt: b.txt:B\r\n--"`)
	kind, body = form(t, "name=Ann", "avatar@me.gif;image/gif=GIF89a123", "doc@1;a/b=", "doc@2;a/b=", "doc@3;a/b=")
	expectInvalid(t, ask(t, app, "POST /", "Content-Type: "+kind, "", body), 413,
		"form avatar maxLength 8", "form avatar contentMediaType image/png, image/jpeg", "form doc maxItems 2")
	kind, body = form(t, "name@n;text/plain=Ann", "avatar=x")
	expectViolations(t, ask(t, app, "POST /", "Content-Type: "+kind, "", body), "form name type text field", "form avatar type file")
	expectViolations(t, ask(t, app, "POST /", "Content-Type: "+kind, "", body[:len(body)-8]), "body # syntax")
	expectViolations(t, ask(t, app, "POST /", "Content-Type: multipart/form-data", "", body), "body # syntax")
	if a := ask(t, app, "POST /", "Content-Type: application/x-www-form-urlencoded", "", "name=Ann"); a.status != 415 {
		t.Errorf("form without files: got status %d", a.status)
	}
}

// The status is that of the worst violation: first a file that is too large, then a file of a wrong type, then the configured
// status. The document has these statuses. Requests do not affect each other's status.
func TestFileStatus(t *testing.T) {
	app := quiet()
	typed.Configure(app, typed.Config{InvalidStatus: 422})
	op := typed.Post(app, "/", func(*dunlin.Request, upload) (typed.None, error) { return typed.None{}, nil })
	text := typed.Post(app, "/text", func(*dunlin.Request, login) (typed.None, error) { return typed.None{}, nil })
	for _, c := range []struct {
		name, avatar string
		status       int
		want         []string
	}{
		{"A", "me.png;image/png=" + pngSignature + "1", 413, []string{"form name minLength 2", "form avatar maxLength 8"}},
		{"A", "me.png;image/png=" + pngSignature, 422, []string{"form name minLength 2"}},
		{"A", "me.gif;image/gif=GIF89a", 415, []string{"form name minLength 2", "form avatar contentMediaType image/png, image/jpeg"}},
		{"Ann", "me.png;image/png=" + pngSignature, 204, nil},
	} {
		kind, body := form(t, "name="+c.name, "avatar@"+c.avatar)
		a := ask(t, app, "POST /", "Content-Type: "+kind, "", body)
		if c.status == 204 {
			expect(t, a, 204, "")
			continue
		}
		expectInvalid(t, a, c.status, c.want...)
		if c.status == 413 && !strings.Contains(a.body, `"detail":"must have at most 8 bytes"`) {
			t.Errorf("got %s", a.body)
		}
	}
	documented := func(answers []typed.Answer) (list string) {
		for _, a := range answers {
			if a.Invalid {
				list += strconv.Itoa(a.Status) + " " + a.Description + "\n"
			}
		}
		return list
	}
	if got, want := documented(op.Answers()), "413 The body is too large; avatar has more than 8 bytes\n"+
		"415 The media type of the body is not supported; avatar is not of the type image/png or image/jpeg\n422 The request is invalid\n"; got != want {
		t.Errorf("answers of an operation with files: got\n%s", got)
	}
	if got := documented(text.Answers()); got != "422 The request is invalid\n" {
		t.Errorf("answers of a form without files: got\n%s", got)
	}
}

func TestParts(t *testing.T) {
	app := quiet()
	typed.Post(app, "/", func(_ *dunlin.Request, in struct{ Body typed.Parts }) (string, error) {
		s := ""
		for part, err := range in.Body.All() {
			if err != nil {
				return "", err
			}
			b, err := io.ReadAll(part)
			if err != nil {
				return "", err
			}
			s += part.FormName() + "=" + string(b) + ";"
		}
		return s, nil
	})
	kind, body := form(t, "a=1", "b@f;a/b=2")
	expect(t, ask(t, app, "POST /", "Content-Type: "+kind, "", body), 200, `"a=1;b=2;"`)
	if a := post(t, app, "/", "{}"); a.status != 415 {
		t.Errorf("JSON body: got status %d", a.status)
	}
}
