package suite

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestAdapters(t *testing.T) {
	for _, a := range Adapters {
		Run(t, a)
	}
}

// Each test and each case in the list of exceptions exists.
func TestExceptions(t *testing.T) {
	var all strings.Builder
	files, _ := filepath.Glob("*_test.go")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for _, e := range exceptions {
		for _, what := range e.what {
			named := func(c Case) bool { return c.Name == what }
			if !slices.ContainsFunc(Cases, named) && !strings.Contains(all.String(), "func "+what+"(t *testing.T)") {
				t.Errorf("exceptions lists %q, which is neither a test nor a case", what)
			}
		}
	}
}
