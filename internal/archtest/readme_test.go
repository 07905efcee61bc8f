package archtest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The example of the README is a program that every build compiles: the text of
// docs/quickstart from its package clause on.
func TestReadmeExampleCompiles(t *testing.T) {
	program := read(t, "docs/quickstart/main.go")
	_, body, found := strings.Cut(program, "\npackage main\n")
	if !found {
		t.Fatal("docs/quickstart/main.go has no package clause below its comment")
	}
	want := "```go\npackage main\n" + body + "```\n"
	if !strings.Contains(read(t, "README.md"), want) {
		t.Errorf("README.md does not show docs/quickstart/main.go as it is: what newcomers copy must compile. It should hold:\n%s", want)
	}
}

// The two commands of the README are those that newcomers type and that the
// checks run, also with nothing but Go.
func TestReadmeCommands(t *testing.T) {
	readme := read(t, "README.md")
	for _, command := range []string{"go run ./examples/users", "go test ./..."} {
		if !strings.Contains(readme, "\n"+command+"\n") {
			t.Errorf("README.md does not show the command %q on a line of its own", command)
		}
		if !strings.Contains(read(t, ".ci/bare"), "\nbare "+command) {
			t.Errorf(".ci/bare does not run «%s», a command that README.md promises", command)
		}
	}
	for _, command := range []string{"go test ./...", ".ci/bare"} {
		if !strings.Contains(read(t, ".ci/run"), "\" "+command+"\n") {
			t.Errorf(".ci/run has no step that runs «%s»", command)
		}
	}
}

// Links inside the repository lead somewhere.
func TestLinks(t *testing.T) {
	for _, doc := range []string{"README.md", "CHANGELOG.md", "docs/ARCHITECTURE.md", "docs/RATIONALE.md", "docs/DEPLOY.md", "docs/GUIDE.md", "docs/GUIDE-typed.md", "docs/COMING-FROM.md", "docs/coming-from/chi.md", "docs/coming-from/echo.md", "docs/coming-from/fiber.md", "docs/coming-from/gin.md"} {
		rest := withoutCode(withoutCode(read(t, doc), "```"), "`") // it has no links
		for {
			_, after, found := strings.Cut(rest, "](")
			if !found {
				break
			}
			var target string
			target, rest, _ = strings.Cut(after, ")")
			target, _, _ = strings.Cut(target, "#")
			if target == "" || strings.Contains(target, "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, filepath.Dir(doc), target)); err != nil {
				t.Errorf("%s links to %s, which is not there", doc, target)
			}
		}
	}
}

// withoutCode returns a text without what is between two fences.
func withoutCode(text, fence string) string {
	var rest strings.Builder
	for i, piece := range strings.Split(text, fence) {
		if i%2 == 0 {
			rest.WriteString(piece)
		}
	}
	return rest.String()
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
