package pieces_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/docs/pages/pieces"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/middleware"
)

// The lines of a piece are its non-blank lines after the imports, comments included.
func TestPiecesAreShort(t *testing.T) {
	for file, most := range map[string]int{"create.go": 23, "login.go": 29, "problems.go": 20} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		files := token.NewFileSet()
		syntax, err := parser.ParseFile(files, file, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		imports, ok := syntax.Decls[0].(*ast.GenDecl)
		if !ok || imports.Tok != token.IMPORT {
			t.Fatalf("%s does not begin with its imports", file)
		}
		n := 0
		for line := range strings.Lines(string(text[files.Position(imports.End()).Offset:])) {
			if strings.TrimSpace(line) != "" {
				n++
			}
		}
		t.Logf("%s: %d lines", file, n)
		if n > most {
			t.Errorf("%s has %d lines, want %d at most", file, n, most)
		}
	}
}

// Every error has the envelope. Creation requires a login. Readers with a login see their favourites.
func TestPieces(t *testing.T) {
	keys := middleware.NewKeyRing([]byte("0123456789abcdef"))
	send := dunlintest.NewTransport(pieces.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler)}, keys)).RoundTrip
	const sea = `{"article":{"title":"The Sea","description":"salt","body":"water","tagList":["sea"]}}`
	ada := "Token " + keys.Sign("login", "ada")
	for _, c := range []struct {
		what, method, path, login, body string
		status                          int
		want                            string
	}{
		{"create without a login", "POST", "/api/articles", "", sea, 401, `{"errors":{"body":[`},
		{"create with a forged login", "POST", "/api/articles", ada + "x", sea, 401, `{"errors":{"body":[`},
		{"create", "POST", "/api/articles", ada, sea, 201, `{"article":{"slug":"the-sea","title":"The Sea","author":"ada","tagList":["sea"],"yours":true}}`},
		{"create again", "POST", "/api/articles", ada, sea, 422, `{"errors":{"body":["an article has this title"]}}`},
		{"create without a title", "POST", "/api/articles", ada, strings.Replace(sea, "The Sea", "", 1), 400, `{"errors":{"title":["`},
		{"read with a login", "GET", "/api/articles/the-sea", ada, "", 200, `"yours":true`},
		{"read without a login", "GET", "/api/articles/the-sea", "", "", 200, `"yours":false`},
		{"read with a forged login", "GET", "/api/articles/the-sea", "Token ada", "", 401, `{"errors":{"body":[`},
		{"read a missing article", "GET", "/api/articles/none", "", "", 404, `{"errors":{"body":["there is no such article"]}}`},
		{"no route", "GET", "/none", "", "", 404, `{"errors":{"body":[`},
	} {
		req := httptest.NewRequest(c.method, "http://example.com"+c.path, strings.NewReader(c.body))
		if c.body != "" {
			req.Header.Set("Content-Type", "application/json")
		} else {
			req.Body = http.NoBody
		}
		if c.login != "" {
			req.Header.Set("Authorization", c.login)
		}
		resp, err := send(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != c.status || !strings.Contains(string(body), c.want) {
			t.Errorf("%s: %d %s, %v; want %d and %s", c.what, resp.StatusCode, body, err, c.status, c.want)
		}
	}
}
