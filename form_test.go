package dunlin_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

const (
	urlencoded = "Content-Type: application/x-www-form-urlencoded"
	multi      = `Content-Type: multipart/form-data; boundary="b d"`
)

// parts renders a multipart body; a field is "name=value", a file "name@value".
func parts(fields ...string) string {
	var b strings.Builder
	for _, f := range fields {
		i := strings.IndexAny(f, "=@")
		fmt.Fprintf(&b, "--b d\r\nContent-Disposition: form-data; name=%q", f[:i])
		if f[i] == '@' {
			fmt.Fprintf(&b, "; filename=%q", f[:i]+".txt")
		}
		b.WriteString("\r\n\r\n" + f[i+1:] + "\r\n")
	}
	return b.String() + "--b d--\r\n"
}

func registerForms(app *dunlin.App) {
	app.Get("/probe", text("probe"))
	app.Post("/form", func(r *dunlin.Request) dunlin.Response {
		a, err := r.FormValue("a")
		if err != nil {
			return dunlin.Error(err)
		}
		form, err := r.Form()
		if err != nil {
			return dunlin.Error(err)
		}
		return dunlin.Text(fmt.Sprintf("a=%s %v", a, form))
	})
	app.Post("/parts", func(r *dunlin.Request) dunlin.Response {
		var b strings.Builder
		for part, err := range r.Parts() {
			if err != nil {
				return dunlin.Error(err)
			}
			n, err := io.Copy(io.Discard, part)
			if err != nil {
				return dunlin.Error(err)
			}
			fmt.Fprintf(&b, "%s %q %d; ", part.FormName(), part.FileName(), n)
		}
		return dunlin.Text(b.String())
	})
}

func formCases() []parityCase {
	bad := func(detail string) string {
		return problem("400 Bad Request", `{"title":"Bad Request","status":400,"detail":"`+detail+`"}`)
	}
	unsupported := func(detail string) string {
		return problem("415 Unsupported Media Type", `{"title":"Unsupported Media Type","status":415,"detail":"`+detail+`"}`)
	}
	const forms = "the body must be application/x-www-form-urlencoded or multipart/form-data"
	return []parityCase{
		{name: "urlencoded", send: req("POST /form?a=query", urlencoded, "", "a=1&b=x+y%21&a=2"), want: plain("a=1 map[a:[1 2] b:[x y!]]")},
		{name: "with a charset", send: req("POST /form", urlencoded+"; charset=utf-8", "", "a=1"), want: plain("a=1 map[a:[1]]")},
		{name: "empty", send: req("POST /form", urlencoded, "", ""), want: plain("a= map[]")},
		{name: "chunked", send: req("POST /form", urlencoded, "Transfer-Encoding: chunked", "", "3\r\na=1\r\n0\r\n\r\n"), want: plain("a=1 map[a:[1]]")},
		{name: "malformed", send: req("POST /form", urlencoded, "", "a=%zz"), want: bad("the form is malformed")},
		{name: "another type", send: req("POST /form", "Content-Type: application/json", "", "{}"), want: unsupported(forms)},
		{name: "no type", send: req("POST /form", "", "a=1"), want: unsupported(forms)},
		{name: "multipart", send: req("POST /form", multi, "", parts("a=1", "b=x\r\ny", "a=2")), want: plain("a=1 map[a:[1 2] b:[x\r\ny]]")},
		{name: "multipart with a file", send: req("POST /form", multi, "", parts("a=1", "f@file")), want: unsupported("the form must hold no files")},
		{name: "parts", send: req("POST /parts", multi, "", parts("a=1", "f@"+strings.Repeat("x", 500), "e=")), want: plain(`a "" 1; f "f.txt" 500; e "" 0; `)},
		{name: "parts of another type", send: req("POST /parts", urlencoded, "", "a=1"), want: unsupported("the body must be multipart/form-data")},
		{name: "parts without a boundary", send: req("POST /parts", "Content-Type: multipart/form-data", "", "x"), want: bad("the multipart body has no boundary")},
		{name: "parts that end early", send: req("POST /parts", multi, "", strings.TrimSuffix(parts("a=1", "b=2"), "--b d--\r\n")), want: bad("the multipart body is malformed")},
		{name: "no parts", send: req("POST /parts", multi, "", "nonsense"), want: bad("the multipart body is malformed")},
	}
}

func TestForms(t *testing.T) {
	onEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := start(t, dunlin.Config{Engine: engine, MaxBody: parityMaxBody}, registerForms)
		for _, c := range formCases() {
			t.Run(c.name, func(t *testing.T) {
				if got := exchangeRaw(t, addr, false, c.send)[0]; got != c.want {
					t.Errorf("answer:\n%s\nwant:\n%s", got, c.want)
				}
			})
		}
	})
}

// A form may have a limited number of fields, and its parts of headers, whatever its
// length: each costs many times its bytes.
func TestFormFields(t *testing.T) {
	const most = 20
	repeated := func(n int) []string { return slices.Repeat([]string{"a="}, n) }
	lines := func(n int) string {
		return "--b d\r\nContent-Disposition: form-data; name=a\r\n" + strings.Repeat("X-A: 1\r\n", n-1) + "\r\n\r\n--b d--\r\n"
	}
	refused := problem("413 Request Entity Too Large",
		`{"title":"Request Entity Too Large","status":413,"detail":"the form has more fields than the limit of 20"}`)
	cases := []parityCase{
		{name: "urlencoded", send: req("POST /form", urlencoded, "", strings.Join(repeated(most), "&")), want: plain("a= map[a:[" + strings.Repeat(" ", most-1) + "]]")},
		{name: "too many", send: req("POST /form", urlencoded, "", strings.Join(repeated(most+1), "&")), want: refused},
		{name: "empty ones count", send: req("POST /form", urlencoded, "", strings.Repeat("&", most)), want: refused},
		{name: "parts", send: req("POST /parts", multi, "", parts(repeated(most)...)), want: plain(strings.Repeat(`a "" 0; `, most))},
		{name: "too many parts", send: req("POST /parts", multi, "", parts(repeated(most+1)...)), want: refused},
		{name: "too many parts of a form", send: req("POST /form", multi, "", parts(repeated(most+1)...)), want: refused},
		{name: "headers of a part", send: req("POST /parts", multi, "", lines(headersPerPart*most)), want: plain(`a "" 0; `)},
		{name: "too many headers", send: req("POST /parts", multi, "", lines(headersPerPart*most+1)), want: refused},
	}
	onEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := start(t, dunlin.Config{Engine: engine, MaxFormFields: most}, registerForms)
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				got := exchangeRaw(t, addr, false, c.send)[0]
				if got = strings.Replace(got, "Connection: close\n", "", 1); got != c.want {
					t.Errorf("answer:\n%s\nwant:\n%s", got, c.want)
				}
			})
		}
	})
}

const headersPerPart = 10

// However the bytes are cut, the form is the same.
func TestFormsSplit(t *testing.T) {
	onEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := start(t, dunlin.Config{Engine: engine}, registerForms)
		send := req("POST /parts", multi, "", parts("a=1", "f@xyz"))
		conn := dial(t, addr)
		br := bufio.NewReader(conn)
		for i := 1; i < len(send); i++ {
			for _, piece := range []string{send[:i], send[i:]} {
				if _, err := io.WriteString(conn, piece); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := readAnswer(br, "POST"); err != nil || got != plain(`a "" 1; f "f.txt" 3; `) {
				t.Fatalf("split at %d: %q, %v", i, got, err)
			}
		}
	})
}

func TestFormsTooLarge(t *testing.T) {
	over := strings.Repeat("x", parityMaxBody)
	chunks := func(body string) string { return fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body) }
	onEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := start(t, dunlin.Config{Engine: engine, MaxBody: parityMaxBody}, registerForms)
		for name, send := range map[string]string{
			"urlencoded":        req("POST /form", urlencoded, "", "a="+over),
			"urlencoded chunks": req("POST /form", urlencoded, "Transfer-Encoding: chunked", "", chunks("a="+over)),
			"multipart":         req("POST /form", multi, "", parts("a="+over)),
			"parts":             req("POST /parts", multi, "", parts("a="+over)),
			"parts in chunks":   req("POST /parts", multi, "Transfer-Encoding: chunked", "", chunks(parts("f@"+over))),
		} {
			t.Run(name, func(t *testing.T) {
				conn := dial(t, addr)
				_, _ = io.WriteString(conn, send)
				got, err := readAnswer(bufio.NewReader(conn), http.MethodPost)
				if got = strings.Replace(got, "Connection: close\n", "", 1); err != nil || got != problem413 {
					t.Errorf("%v, %s", err, got)
				}
			})
		}
	})
}
