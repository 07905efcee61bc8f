package archtest_test

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// compiled lists the folders whose files, including those of subfolders, contain the code blocks of the documentation.
var compiled = []string{
	"docs", "bench/idioms", "examples", "interop", "acme", "auth", "cbor", "compress", "otel", "prometheus", "store/redis",
}

// The code of the documentation compiles: each Go block is a part of a file that some build compiles, line for line.
func TestGuideCodeCompiles(t *testing.T) {
	var sources [][]string
	for _, folder := range compiled {
		for _, path := range filesOf(t, folder, ".go") {
			sources = append(sources, trimmedLines(read(t, path)))
		}
	}
	found := map[string]int{}
	for _, page := range append(filesOf(t, "docs", ".md"), "README.md", "examples/shop/README.md", "examples/realworld/README.md") {
		for _, block := range goBlocks(read(t, page)) {
			found[page]++
			want := trimmedLines(block)
			if !slices.ContainsFunc(sources, func(lines []string) bool { return containsLines(lines, want) }) {
				t.Errorf("%s has a code block that is not in any compiled file (%s):\n%s", page, strings.Join(compiled, ", "), block)
			}
		}
	}
	for _, page := range []string{"docs/GUIDE.md", "docs/GUIDE-typed.md", "docs/COMING-FROM.md", "docs/DATABASES.md", "docs/coming-from/chi.md", "docs/middleware/cors.md"} {
		if found[page] == 0 {
			t.Errorf("%s has no block of Go: the test looks in the wrong place", page)
		}
	}
}

// filesOf returns the files at and below a folder whose names end in ext, from the root of the module.
func filesOf(t *testing.T, folder, ext string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ext {
			return err
		}
		rel, err := filepath.Rel(root, path)
		files = append(files, filepath.ToSlash(rel))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// goBlocks returns the blocks of Go in a page.
func goBlocks(text string) (blocks []string) {
	for {
		_, after, found := strings.Cut(text, "```go\n")
		if !found {
			return blocks
		}
		block, rest, _ := strings.Cut(after, "```")
		blocks, text = append(blocks, block), rest
	}
}

// trimmedLines returns the lines of a text without their indentation.
func trimmedLines(text string) []string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return lines
}

// containsLines reports whether text has the lines want, one after the other.
func containsLines(text, want []string) bool {
	for i := range text {
		if i+len(want) <= len(text) && slices.Equal(text[i:i+len(want)], want) {
			return true
		}
	}
	return false
}
