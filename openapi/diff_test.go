package openapi_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/openapi"
)

func TestDiff(t *testing.T) {
	text, err := os.ReadFile("testdata/library-3.1.json")
	if err != nil {
		t.Fatal(err)
	}
	old := string(text)
	if changes, err := openapi.Diff(text, text); err != nil || len(changes) > 0 {
		t.Errorf("document compared with itself: got changes got %v, %v", changes, err)
	}
	const breaking, harmless = "breaking: ", "         "
	for _, c := range []struct{ name, from, to, want string }{
		{"operation removed", `"/login": {`, `"/log-in": {`, breaking + "POST /login: operation removed"},
		{"operation added", `"/login": {`, `"/log-in": {`, harmless + "POST /log-in: operation added"},
		{"operationId", `"operationId": "listBooks"`, `"operationId": "books"`, breaking + "GET /shelves/{shelf}/books: operationId changed from listBooks to books: names in generated clients change"},
		{"smaller maximum", `"maximum": 100,`, `"maximum": 50,`, breaking + "GET /shelves/{shelf}/books: query parameter limit: values must now satisfy maximum 50"},
		{"larger maximum", `"maximum": 100,`, `"maximum": 200,`, ""},
		{"enum of a parameter", `"title",
                  "rating"`, `"title"`, breaking + `GET /shelves/{shelf}/books: query parameter sort: #/[]: "rating" is no longer accepted`},
		{"member of a response and a body", `"maxLength": 200,`, `"maxLength": 300,`, breaking + "values may no longer satisfy maxLength 200"},
		{"response removed", `"201": {`, `"203": {`, breaking + "POST /admin/books: response 201: removed"},
		{"header", `"X-Total": {
                "required": true,`, `"X-Total": {`, breaking + "GET /shelves/{shelf}/books: response 200: header X-Total: may be absent"},
		{"security", `"security": [
          {
            "key": []
          }
        ]`, `"security": []`, ""},
		{"alternative credentials", `"security": [
          {
            "key": []
          }
        ]`, `"security": [{"token": []}, {"key": []}]`, ""},
		{"other credentials", `"security": [
          {
            "key": []
          }
        ]`, `"security": [{"token": []}]`, breaking + "POST /admin/books: the credentials key are no longer sufficient"},
		{"more credentials", `"security": [
          {
            "key": []
          }
        ]`, `"security": [{"token": [], "key": []}]`, breaking + "POST /admin/books: the credentials key are no longer sufficient"},
		{"media type", `"text/csv": {}`, `"text/plain": {}`, breaking + "POST /import: body: text/csv is no longer accepted"},
		{"no longer null", `"anyOf": [
              {
                "type": "string"
              },
              {
                "type": "null"
              }
            ]`, `"type": "string"`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			edited := strings.Replace(old, c.from, c.to, 1)
			if edited == old {
				t.Fatalf("got a document without %s", c.from)
			}
			changes, err := openapi.Diff(text, []byte(edited))
			if err != nil {
				t.Fatal(err)
			}
			found, broken := false, false
			var lines []string
			for _, x := range changes {
				lines = append(lines, x.String())
				prefix, what, _ := strings.Cut(c.want, ": ")
				found = found || x.String() == c.want || prefix == "breaking" && x.Breaking && strings.HasSuffix(x.What, what)
				broken = broken || x.Breaking
			}
			if c.want == "" && broken || c.want != "" && !found {
				t.Errorf("changes:\n%s\nwant %q", strings.Join(lines, "\n"), c.want)
			}
		})
	}
	if _, err := openapi.Diff([]byte("{}"), text); err == nil {
		t.Error("a document without version is accepted")
	}
	if _, err := openapi.Diff(text, []byte("{")); err == nil {
		t.Error("malformed JSON is accepted")
	}
}

// A shared type is compared once, and not once for each path to it.
func TestDiffOfSharedTypes(t *testing.T) {
	var schemas []string
	for i := range 40 {
		ref := fmt.Sprintf(`{"$ref":"#/components/schemas/T%d"}`, i+1)
		schemas = append(schemas, fmt.Sprintf(`"T%d":{"type":"object","properties":{"a":%s,"b":%s,"c":{"anyOf":[%s,{"type":"null"}]}}}`, i, ref, ref, ref))
	}
	doc := `{"openapi":"3.1.1","paths":{"/":{"get":{"responses":{"200":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/T0"}}}}}}}},
		"components":{"schemas":{` + strings.Join(schemas, ",") + `,"T40":{"type":"string"}}}}`
	if changes, err := openapi.Diff([]byte(doc), []byte(doc)); err != nil || len(changes) > 0 {
		t.Errorf("got %v, %v", changes, err)
	}
	changes, err := openapi.Diff([]byte(doc), []byte(strings.Replace(doc, `"T40":{"type":"string"}`, `"T40":{"type":"integer"}`, 1)))
	if err != nil || len(changes) == 0 || len(changes) > 200 || !strings.Contains(changes[0].String(), "values may no longer satisfy type string") {
		t.Errorf("%d changes, %.300v, %v", len(changes), changes, err)
	}
}
