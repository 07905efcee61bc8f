package archtest_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// Every example, those of other modules included, has a test and a row in examples/README.md.
func TestExamplesAreListed(t *testing.T) {
	list := read(t, "examples/README.md")
	programs := 0
	for _, pattern := range []string{"examples/*/main.go", "*/examples/*/main.go"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, program := range found {
			programs++
			folder, err := filepath.Rel(root, filepath.Dir(program))
			if err != nil {
				t.Fatal(err)
			}
			folder = filepath.ToSlash(folder)
			link := strings.TrimPrefix(folder, "examples/")
			if link == folder {
				link = "../" + folder // of another module
			}
			if !strings.Contains(list, "]("+link+"/") {
				t.Errorf("examples/README.md has no link to %s", folder)
			}
			if tests, _ := filepath.Glob(filepath.Join(filepath.Dir(program), "*_test.go")); len(tests) == 0 {
				t.Errorf("%s has no test", folder)
			}
		}
	}
	if programs == 0 {
		t.Error("no examples found: the test looks in the wrong place")
	}
}
