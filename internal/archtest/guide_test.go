package archtest_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What newcomers copy compiles: each block of Go in the guide, and on the pages for those who come from elsewhere, is a part of
// a file that some build compiles, line for line.
func TestGuideCodeCompiles(t *testing.T) {
	var sources [][]string
	for _, folder := range []string{"docs/guide", "bench/idioms", "examples/shop", "interop"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
				return err
			}
			text, err := os.ReadFile(path)
			sources = append(sources, trimmedLines(string(text)))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs/coming-from/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, filepath.Join(root, "docs/GUIDE.md"), filepath.Join(root, "docs/COMING-FROM.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		blocks := goBlocks(string(text))
		if len(blocks) == 0 {
			t.Errorf("%s has no block of Go", page)
		}
		for _, block := range blocks {
			want := trimmedLines(block)
			if !slices.ContainsFunc(sources, func(lines []string) bool { return containsLines(lines, want) }) {
				t.Errorf("%s shows what no file has that is compiled (docs/guide, bench/idioms, examples/shop, interop):\n%s", filepath.Base(page), block)
			}
		}
	}
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

// containsLines reports whether want are lines of text, one after the other.
func containsLines(text, want []string) bool {
	for i := range text {
		if i+len(want) <= len(text) && slices.Equal(text[i:i+len(want)], want) {
			return true
		}
	}
	return false
}
