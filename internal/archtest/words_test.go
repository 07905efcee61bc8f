package archtest_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// vocabulary is the content of docs/GLOSSARY.md.
type vocabulary struct {
	terms   []string            // names of terms
	retired map[string]string   // hints by retired word
	homes   map[string][]string // folders that may declare names with a word, by the word
}

// readVocabulary parses the tables of the glossary. The header of a table tells its kind.
func readVocabulary(page string) vocabulary {
	v := vocabulary{retired: map[string]string{}, homes: map[string][]string{}}
	kind := ""
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) < 4 {
			kind = ""
			continue
		}
		first, second := strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2])
		switch {
		case first == "term" || first == "retired" || first == "word":
			kind = first
		case strings.HasPrefix(first, "---"):
		case kind == "term":
			v.terms = append(v.terms, strings.Split(first, ", ")...)
		case kind == "retired":
			for word := range strings.SplitSeq(first, ", ") {
				v.retired[word] = second
			}
		case kind == "word":
			for word := range strings.SplitSeq(first, ", ") {
				v.homes[word] = strings.Split(strings.ReplaceAll(strings.TrimSpace(cells[3]), "`", ""), ", ")
			}
		}
	}
	return v
}

// wordsOf returns the words of an identifier in lower case.
func wordsOf(name string) (words []string) {
	runes := []rune(name)
	begin := 0
	for i := 1; i <= len(runes); i++ {
		if i == len(runes) || runes[i] == '_' || unicode.IsUpper(runes[i]) && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			words = append(words, strings.ToLower(strings.Trim(string(runes[begin:i]), "_")))
			begin = i
		}
	}
	return words
}

var (
	proseWord = regexp.MustCompile(`[a-z]+`)
	// ownDomain matches folders whose names belong to another domain: that of an example, or of charts and processes.
	ownDomain = regexp.MustCompile(`^(?:bench|examples|docs)(?:/|$)`)
	// usual are names of a standard and idioms that contain words of the tables.
	usual = strings.NewReplacer("EnhanceYourCalm", "", "enhanceYourCalm", "", "ENHANCE_YOUR_CALM", "", "InPlace", "", "inPlace", "",
		"WithGroup", "")
)

// misused returns the uses of words that the vocabulary does not allow in a file.
func (v vocabulary) misused(s source) (found []string) {
	report := func(pos token.Pos, text, word, hint string) {
		found = append(found, fmt.Sprintf("%s:%d: %q has the word %s: %s", s.path, s.fset.Position(pos).Line, text, word, hint))
	}
	declared := func(names ...*ast.Ident) {
		for _, name := range names {
			for _, word := range wordsOf(usual.Replace(name.Name)) {
				if hint, ok := v.retired[word]; ok {
					report(name.Pos(), name.Name, word, "it is retired, use "+hint)
				}
				homes, ok := v.homes[word]
				if ok && !s.test && !ownDomain.MatchString(s.folder) && !slices.Contains(homes, "/"+s.folder) {
					report(name.Pos(), name.Name, word, "its meaning in docs/GLOSSARY.md belongs to other packages, use another word")
				}
			}
		}
	}
	ast.Inspect(s.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			declared(n.Name)
		case *ast.TypeSpec:
			declared(n.Name)
		case *ast.ValueSpec:
			declared(n.Names...)
		case *ast.Field:
			declared(n.Names...)
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				if name, ok := left.(*ast.Ident); ok && n.Tok == token.DEFINE {
					declared(name)
				}
			}
		case *ast.RangeStmt:
			for _, left := range []ast.Expr{n.Key, n.Value} {
				if name, ok := left.(*ast.Ident); ok && n.Tok == token.DEFINE {
					declared(name)
				}
			}
		}
		return true
	})
	for _, group := range s.syntax.Comments {
		for _, comment := range group.List {
			for _, word := range proseWord.FindAllString(strings.ToLower(usual.Replace(comment.Text)), -1) {
				if hint, ok := v.retired[word]; ok {
					report(comment.Pos(), comment.Text, word, "it is retired, use "+hint)
				}
			}
		}
	}
	return found
}

// A word has one meaning in the project: the tables of docs/GLOSSARY.md say which words are not used any more, and which ones
// belong to some packages.
func TestWordsHaveOneMeaning(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "GLOSSARY.md"))
	if err != nil {
		t.Fatal(err)
	}
	v := readVocabulary(string(page))
	if len(v.terms) < 40 || len(v.retired) < 10 || len(v.homes) < 4 {
		t.Fatalf("docs/GLOSSARY.md has %d terms, %d retired words and %d words of some packages: a table is missing", len(v.terms), len(v.retired), len(v.homes))
	}
	for _, s := range allSources(t) {
		if s.path == "internal/archtest/words_test.go" || s.path == "internal/archtest/names_test.go" {
			continue
		}
		for _, use := range v.misused(s) {
			t.Error(use)
		}
	}
}

// The glossary has only terms that the code uses.
func TestGlossaryTermsAreUsed(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "GLOSSARY.md"))
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, s := range allSources(t) {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(s.path)))
		if err != nil {
			t.Fatal(err)
		}
		code.WriteString(strings.ReplaceAll(strings.ToLower(string(text)), "\n// ", " "))
	}
	for _, term := range unusedTerms(readVocabulary(string(page)).terms, code.String()) {
		t.Errorf("docs/GLOSSARY.md: no code has the term %q: delete it, or give it the name that the code has", term)
	}
}

// unusedTerms returns the terms that do not occur in code, which is in lower case.
func unusedTerms(terms []string, code string) (unused []string) {
	for _, term := range terms {
		term = strings.ToLower(term)
		if !strings.Contains(code, term) && !strings.Contains(code, strings.ReplaceAll(term, " ", "")) {
			unused = append(unused, term)
		}
	}
	return unused
}

// The checks fail for a text that breaks the rules.
func TestWordChecksFindMisuses(t *testing.T) {
	v := readVocabulary("| term | meaning |\n| --- | --- |\n| turn | one pass of a loop |\n| pigeon, dove | a bird |\n\n" +
		"| retired | use |\n| --- | --- |\n| modest, calm | small |\n\n" +
		"| word | meaning | packages |\n| --- | --- | --- |\n| turn | one pass of a loop | `/internal/engine`, `/websocket` |\n")
	const bad = `package x

// A modest client holds little.
var enhanceYourCalm, awaitTurn int

func (modestClient) Read() { for turn := range 3 {} }

type modestClient struct{ calmDown bool }

func inPlace() { turns, returned := 1, 2 }
`
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "x.go", bad, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	s := source{path: "x.go", folder: "x", syntax: file, fset: fset}
	var lines []string
	for _, use := range v.misused(s) {
		lines = append(lines, strings.Join(strings.SplitN(use, " ", 3)[:2], " "))
	}
	slices.Sort(lines)
	want := []string{`x.go:3: "//`, `x.go:4: "awaitTurn"`, `x.go:6: "turn"`, `x.go:8: "calmDown"`, `x.go:8: "modestClient"`}
	if !slices.Equal(lines, want) {
		t.Errorf("got misuses %q, want %q", lines, want)
	}
	s.folder = "internal/engine"
	if got := len(v.misused(s)); got != 3 {
		t.Errorf("got %d misuses in a package that may use turn, want 3", got)
	}
	if got := unusedTerms(v.terms, "func awaitturn() // a dove"); !slices.Equal(got, []string{"pigeon"}) {
		t.Errorf("got unused terms %q, want pigeon", got)
	}
}
