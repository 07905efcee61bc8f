package archtest_test

import (
	"fmt"
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// maxMarkers is the maximum number of markers of odd English in 10,000 words. The comments of net/http have 4.
const maxMarkers = 17

// markers are constructions in place of a noun or an active verb.
var markers = regexp.MustCompile(`(?i)` + strings.Join([]string{
	`\bbe it\b`, `\bfor want of\b`, `\bin whole\b`, `\bnobody\b`, `\bsomebody\b`, `\bwhoever\b`, `\bof (?:who|whom)\b`,
	`\bthose (?:who|that|which)\b`, `\bone (?:who|that)\b`, `\bfor (?:as|so) long as\b`, `\bcomes? to its end\b`,
	`\b(?:who|whatever|everybody|anybody) (?:is|are|has|have|holds?|comes?|asks?|does|do|wants?|takes?|sends?|reads?|knows?)\b`,
	`\b(?:of|to|by|for|from|with|in|on|than|as|beyond|and|but|not|that) what\b`,
	`\bwhat (?:is|are|was|has|have|it|they|a|an|the|others?|clients?|comes?|goes|fits|stands|lies)\b`,
	`\bmay (?:not )?stand\b`, `\b(?:lies|stands) (?:in|at|on|behind|beside|before)\b`, `\bbehind (?:it|them|that|this|which)\b`,
}, "|") + `|(?-i:(?:^|[.:] )(?:Who|What)\b[^.?]*\.)`)

var words = regexp.MustCompile(`[A-Za-z']+`)

// Comments are written in plain technical English. A text with few markers is not necessarily good, but one with many is hard
// to read.
func TestPlainEnglish(t *testing.T) {
	texts := map[string]*strings.Builder{}
	for _, s := range allSources(t) {
		name := "the comments of /" + s.folder
		if s.test {
			name = "the comments of tests in /" + s.folder
		}
		if texts[name] == nil {
			texts[name] = &strings.Builder{}
		}
		if ast.IsGenerated(s.syntax) {
			continue
		}
		for _, group := range s.syntax.Comments {
			texts[name].WriteString(strings.ReplaceAll(group.Text(), "\n", " ") + "\n")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		checkProse(t, name, texts[name].String())
	}
}

// Documents are written in the same English.
func TestPlainEnglishInDocuments(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob(filepath.Join(root, "docs", "*", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatal(err, len(pages))
	}
	pages = append(pages, more...)
	for _, page := range []string{"README.md", "CONTRIBUTING.md", "SECURITY.md", "bench/README.md", "interop/README.md",
		"examples/README.md", "examples/realworld/README.md", "examples/shop/README.md"} {
		pages = append(pages, filepath.Join(root, page))
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(root, page)
		if err != nil {
			t.Fatal(err)
		}
		var prose strings.Builder
		code := false
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "```") {
				code = !code
			} else if !code {
				prose.WriteString(strings.ReplaceAll(line, "\n", " "))
			}
		}
		checkProse(t, filepath.ToSlash(name), prose.String())
	}
}

func checkProse(t *testing.T, what, text string) {
	t.Helper()
	n := len(words.FindAllString(text, -1))
	found := markers.FindAllStringIndex(text, -1)
	allowed := max(n*maxMarkers/10_000, 2)
	if len(found) <= allowed {
		return
	}
	var hints strings.Builder
	for _, at := range found[max(len(found)-5, 0):] {
		fmt.Fprintf(&hints, "\n\t…%s…", strings.TrimSpace(text[max(at[0]-60, 0):min(at[1]+40, len(text))]))
	}
	t.Errorf("%s: %d markers of odd English in %d words, %d allowed. Use a noun for a clause, and an active verb. Some of them:%s", what, len(found), n, allowed, hints.String())
}
