package archtest_test

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// The example of the README is a program that every build compiles: the text of
// examples/tasks/quickstart from its package clause on.
func TestReadmeExampleCompiles(t *testing.T) {
	program := read(t, "examples/tasks/quickstart/main.go")
	_, body, found := strings.Cut(program, "\npackage main\n")
	if !found {
		t.Fatal("examples/tasks/quickstart/main.go has no package clause below its comment")
	}
	want := "```go\npackage main\n" + body + "```\n"
	if !strings.Contains(read(t, "README.md"), want) {
		t.Errorf("README.md does not show examples/tasks/quickstart/main.go as it is: code that new users copy must compile. It should hold:\n%s", want)
	}
}

// The checks run the two commands of the README, also on a machine with only Go.
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
	if !strings.Contains(read(t, ".ci/run"), "\" .ci/bare\n") { // which runs both
		t.Error(".ci/run has no step that runs .ci/bare")
	}
}

// Links inside the repository lead somewhere.
func TestLinks(t *testing.T) {
	for _, doc := range append(filesOf(t, "docs", ".md"), "README.md", "CHANGELOG.md", "bench/README.md", "interop/README.md", "examples/shop/README.md", "examples/realworld/README.md") {
		rest := withoutCode(withoutCode(read(t, doc), "```"), "`") // it has no links
		for {
			_, after, found := strings.Cut(rest, "](")
			if !found {
				break
			}
			var target string
			target, rest, _ = strings.Cut(after, ")")
			if strings.Contains(target, "://") {
				continue
			}
			file, heading, _ := strings.Cut(target, "#")
			page := path.Join(path.Dir(doc), file)
			if file == "" {
				page = doc
			}
			if _, err := os.Stat(filepath.Join(root, page)); err != nil {
				t.Errorf("%s links to %s, which is not there", doc, target)
			} else if heading != "" && !slices.Contains(headings(read(t, page)), heading) {
				t.Errorf("%s links to %s: %s has no such heading", doc, target, page)
			}
		}
	}
}

// headings returns the anchors of a page's headings, as GitHub names them.
func headings(text string) (anchors []string) {
	for line := range strings.Lines(withoutCode(text, "```")) {
		hashes, title, found := strings.Cut(line, " ")
		if !found || hashes == "" || strings.Trim(hashes, "#") != "" {
			continue
		}
		anchors = append(anchors, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(title)))
	}
	return anchors
}

// withoutCode returns a text without its fenced blocks.
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
