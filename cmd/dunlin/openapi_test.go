package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// service is a program that has its document written.
const service = `package main

import (
	"log"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/openapi"
	"github.com/dunlinhttp/dunlin/typed"
)

func main() {
	app := dunlin.New(dunlin.Config{})
	typed.Get(app, "/hello", func(*dunlin.Request, struct{}) (string, error) { return "hello", nil }).Name("hello")
	if err := openapi.Export(app, openapi.Config{Title: "Hello"}); err != nil {
		log.Fatal(err)
	}
	log.Fatal("it goes on to listen")
}
`

func TestWriteAndDiff(t *testing.T) {
	folder, err := os.MkdirTemp(".", "testdata-*") // inside the module, whose dependencies it uses
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	save := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	save("main.go", service)
	var out, errors bytes.Buffer
	file := filepath.Join(folder, "openapi.json")
	if status := run([]string{"openapi", "write", "-o", file, "./" + folder}, &out, &errors); status != 0 {
		t.Fatalf("status %d: got %s", status, &errors)
	}
	doc, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(doc), `"operationId": "hello"`) {
		t.Fatalf("%v\n%s", err, doc)
	}
	if status := run([]string{"openapi", "diff", file, file}, &out, &errors); status != 0 || out.Len() > 0 {
		t.Errorf("a document and itself: status %d\n%s%s", status, &out, &errors)
	}
	other := save("other.json", strings.Replace(string(doc), `"/hello"`, `"/hallo"`, 1))
	if status := run([]string{"openapi", "diff", file, other}, &out, &errors); status != 1 || out.String() != "breaking: GET /hello: operation removed\n" {
		t.Errorf("status %d\n%s%s", status, &out, &errors)
	}
	for _, args := range [][]string{nil, {"openapi"}, {"openapi", "diff", file}, {"openapi", "diff", file, "missing"}, {"openapi", "write", "./missing"}} {
		if status := run(args, &out, &errors); status != 2 {
			t.Errorf("%q: status %d", args, status)
		}
	}
}
