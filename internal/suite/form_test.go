package suite

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
	app.Get("/probe", Text("probe"))
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

func formCases() []Case {
	bad := func(detail string) string {
		return Problem("400 Bad Request", `{"title":"Bad Request","status":400,"detail":"`+detail+`"}`)
	}
	unsupported := func(detail string) string {
		return Problem("415 Unsupported Media Type", `{"title":"Unsupported Media Type","status":415,"detail":"`+detail+`"}`)
	}
	const forms = "the body must be application/x-www-form-urlencoded or multipart/form-data"
	return []Case{
		{Name: "urlencoded", Send: Request("POST /form?a=query", urlencoded, "", "a=1&b=x+y%21&a=2"), Want: Plain("a=1 map[a:[1 2] b:[x y!]]")},
		{Name: "with a charset", Send: Request("POST /form", urlencoded+"; charset=utf-8", "", "a=1"), Want: Plain("a=1 map[a:[1]]")},
		{Name: "empty", Send: Request("POST /form", urlencoded, "", ""), Want: Plain("a= map[]")},
		{Name: "chunked", Send: Request("POST /form", urlencoded, "Transfer-Encoding: chunked", "", "3\r\na=1\r\n0\r\n\r\n"), Want: Plain("a=1 map[a:[1]]")},
		{Name: "malformed", Send: Request("POST /form", urlencoded, "", "a=%zz"), Want: bad("the form is malformed")},
		{Name: "another type", Send: Request("POST /form", "Content-Type: application/json", "", "{}"), Want: unsupported(forms)},
		{Name: "no type", Send: Request("POST /form", "", "a=1"), Want: unsupported(forms)},
		{Name: "multipart", Send: Request("POST /form", multi, "", parts("a=1", "b=x\r\ny", "a=2")), Want: Plain("a=1 map[a:[1 2] b:[x\r\ny]]")},
		{Name: "multipart with a file", Send: Request("POST /form", multi, "", parts("a=1", "f@file")), Want: unsupported("the form must not contain files")},
		{Name: "parts", Send: Request("POST /parts", multi, "", parts("a=1", "f@"+strings.Repeat("x", 500), "e=")), Want: Plain(`a "" 1; f "f.txt" 500; e "" 0; `)},
		{Name: "parts of another type", Send: Request("POST /parts", urlencoded, "", "a=1"), Want: unsupported("the body must be multipart/form-data")},
		{Name: "parts without a boundary", Send: Request("POST /parts", "Content-Type: multipart/form-data", "", "x"), Want: bad("the multipart body has no boundary")},
		{Name: "parts that end early", Send: Request("POST /parts", multi, "", strings.TrimSuffix(parts("a=1", "b=2"), "--b d--\r\n")), Want: bad("the multipart body is malformed")},
		{Name: "no parts", Send: Request("POST /parts", multi, "", "nonsense"), Want: bad("the multipart body is malformed")},
	}
}

func TestForms(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine, Limits: dunlin.Limits{MaxBody: MaxBody}}, registerForms)
		for _, c := range formCases() {
			t.Run(c.Name, func(t *testing.T) {
				if got := Exchange(t, addr, false, c.Send)[0]; got != c.Want {
					t.Errorf("answer:\n%s\nwant:\n%s", got, c.Want)
				}
			})
		}
	})
}

// A form may have a limited number of fields, and its parts a limited number of headers, regardless of its length: each costs
// many times its bytes.
func TestFormFields(t *testing.T) {
	const most = 20
	repeated := func(n int) []string { return slices.Repeat([]string{"a="}, n) }
	lines := func(n int) string {
		return "--b d\r\nContent-Disposition: form-data; name=a\r\n" + strings.Repeat("X-A: 1\r\n", n-1) + "\r\n\r\n--b d--\r\n"
	}
	refused := Problem("413 Request Entity Too Large",
		`{"title":"Request Entity Too Large","status":413,"detail":"the form has more fields than the limit of 20"}`)
	cases := []Case{
		{Name: "urlencoded", Send: Request("POST /form", urlencoded, "", strings.Join(repeated(most), "&")), Want: Plain("a= map[a:[" + strings.Repeat(" ", most-1) + "]]")},
		{Name: "too many", Send: Request("POST /form", urlencoded, "", strings.Join(repeated(most+1), "&")), Want: refused},
		{Name: "empty ones count", Send: Request("POST /form", urlencoded, "", strings.Repeat("&", most)), Want: refused},
		{Name: "parts", Send: Request("POST /parts", multi, "", parts(repeated(most)...)), Want: Plain(strings.Repeat(`a "" 0; `, most))},
		{Name: "too many parts", Send: Request("POST /parts", multi, "", parts(repeated(most+1)...)), Want: refused},
		{Name: "too many parts of a form", Send: Request("POST /form", multi, "", parts(repeated(most+1)...)), Want: refused},
		{Name: "headers of a part", Send: Request("POST /parts", multi, "", lines(headersPerPart*most)), Want: Plain(`a "" 0; `)},
		{Name: "too many headers", Send: Request("POST /parts", multi, "", lines(headersPerPart*most+1)), Want: refused},
	}
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine, Limits: dunlin.Limits{MaxFormFields: most}}, registerForms)
		for _, c := range cases {
			t.Run(c.Name, func(t *testing.T) {
				got := Exchange(t, addr, false, c.Send)[0]
				if got = strings.Replace(got, "Connection: close\n", "", 1); got != c.Want {
					t.Errorf("answer:\n%s\nwant:\n%s", got, c.Want)
				}
			})
		}
	})
}

const headersPerPart = 10

// The form is the same, however its bytes are divided.
func TestFormsSplit(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine}, registerForms)
		send := Request("POST /parts", multi, "", parts("a=1", "f@xyz"))
		conn := Dial(t, addr)
		br := bufio.NewReader(conn)
		for i := 1; i < len(send); i++ {
			for _, piece := range []string{send[:i], send[i:]} {
				if _, err := io.WriteString(conn, piece); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := ReadAnswer(br, "POST"); err != nil || got != Plain(`a "" 1; f "f.txt" 3; `) {
				t.Fatalf("split at %d: got %q, %v", i, got, err)
			}
		}
	})
}

func TestFormsTooLarge(t *testing.T) {
	over := strings.Repeat("x", MaxBody)
	chunks := func(body string) string { return fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body) }
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine, Limits: dunlin.Limits{MaxBody: MaxBody}}, registerForms)
		for name, send := range map[string]string{
			"urlencoded":        Request("POST /form", urlencoded, "", "a="+over),
			"urlencoded chunks": Request("POST /form", urlencoded, "Transfer-Encoding: chunked", "", chunks("a="+over)),
			"multipart":         Request("POST /form", multi, "", parts("a="+over)),
			"parts":             Request("POST /parts", multi, "", parts("a="+over)),
			"parts in chunks":   Request("POST /parts", multi, "Transfer-Encoding: chunked", "", chunks(parts("f@"+over))),
		} {
			t.Run(name, func(t *testing.T) {
				conn := Dial(t, addr)
				_, _ = io.WriteString(conn, send)
				got, err := ReadAnswer(bufio.NewReader(conn), http.MethodPost)
				if got = strings.Replace(got, "Connection: close\n", "", 1); err != nil || got != Problem413 {
					t.Errorf("got %v, %s", err, got)
				}
			})
		}
	})
}
