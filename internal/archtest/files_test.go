package archtest_test

import (
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestOnePackageComment(t *testing.T) {
	commented := map[string][]string{} // by folder: the files with a package comment
	for _, s := range sources(t) {
		if _, seen := commented[s.folder]; !seen {
			commented[s.folder] = nil
		}
		if s.syntax.Doc != nil && !s.test {
			commented[s.folder] = append(commented[s.folder], s.path)
		}
	}
	for folder, files := range commented {
		if folder == "" {
			folder = "the root"
		}
		switch len(files) {
		case 1:
		case 0:
			t.Errorf("%s has no package comment: the reader learns there what the package is for and what it must not do", folder)
		default:
			t.Errorf("%s has %d package comments (%s): go doc joins them in an order nobody chose", folder, len(files), strings.Join(files, ", "))
		}
	}
}

// fileMaps lists the pages that describe the files of a folder.
var fileMaps = map[string]string{
	"":                   "docs/ARCHITECTURE.md",
	"internal/admission": "internal/admission/doc.go",
	"internal/engine":    "internal/engine/doc.go",
	"internal/schema":    "internal/schema/doc.go",
	"auth":               "auth/jwt.go",
	"openapi":            "openapi/doc.go",
	"store":              "store/doc.go",
	"store/redis":        "store/redis/redis.go",
	"typed":              "typed/doc.go",
	"internal/exchange":  "internal/exchange/doc.go",
	"internal/hpack":     "internal/hpack/doc.go",
	"internal/http2":     "internal/http2/doc.go",
	"internal/lifecycle": "internal/lifecycle/doc.go",
	"internal/looph2":    "internal/looph2/doc.go",
	"internal/loophttp":  "internal/loophttp/doc.go",
	"internal/memory":    "internal/memory/doc.go",
	"internal/request":   "internal/request/doc.go",
	"internal/stdhttp":   "internal/stdhttp/doc.go",
}

func TestFileMapsAreComplete(t *testing.T) {
	systems := strings.NewReplacer("_linux.go", ".go", "_other.go", ".go")
	for _, s := range sources(t) {
		page, name := fileMaps[s.folder], path.Base(s.path)
		if page == "" || s.test || name == "doc.go" {
			continue
		}
		if !slices.ContainsFunc(strings.Fields(read(t, page)), func(word string) bool {
			exact, err := path.Match(word, name)
			anySystem, _ := path.Match(word, systems.Replace(name))
			return err == nil && (exact || anySystem)
		}) {
			t.Errorf("%s does not name %s: a reader looks there for what a file is for", page, s.path)
		}
	}
}

func TestNoGiantFiles(t *testing.T) {
	const most = 600 // lines
	for _, s := range sources(t) {
		if s.lines > most && !s.test && !ast.IsGenerated(s.syntax) {
			t.Errorf("%s has %d lines, more than %d: a file holds one idea; ask what the second one is", s.path, s.lines, most)
		}
	}
}

// unsafeElsewhere lists the files that import unsafe but are not named unsafe*.go, with the reason. Tests are exempt, because
// they are not shipped.
var unsafeElsewhere = map[string]string{
	"internal/engine/syscalls.go": "system calls that package unix does not wrap take pointers",
}

func TestUnsafeIsFenced(t *testing.T) {
	for _, s := range sources(t) {
		name := path.Base(s.path)
		if s.test || strings.HasPrefix(name, "unsafe") || !slices.Contains(s.imports(t), "unsafe") {
			continue
		}
		if unsafeElsewhere[s.path] == "" {
			t.Errorf("%s imports unsafe: it belongs in a file unsafe*.go of its folder, where a reviewer finds every use and the sentence that makes it sound; "+
				"or list it in unsafeElsewhere with the reason", s.path)
		}
	}
}

// sleepers lists the tests that may call time.Sleep, with the reason.
var sleepers = map[string]string{
	"internal/suite/overload_linux_test.go":    "clients that come slowly and think are what overload is judged by",
	"internal/looph2/refusalcount_test.go":     "clients that come slowly and think are what overload is judged by",
	"internal/looph2/observedload_test.go":     "actions and observers take about as long as their timeouts",
	"internal/engine/shutdown_test.go":         "a handler that blocks until it sees the shutdown, which nobody announces to it",
	"internal/engine/progress_test.go":         "handlers that block and clients that are slow to read are what is tested",
	"internal/engine/stress_test.go":           "handlers that block are what is tested",
	"resilience/resilience_test.go":            "time in a bubble of testing/synctest, where it passes by sleeping",
	"internal/logqueue/logqueue_test.go":       "time in a bubble of testing/synctest, where it passes by sleeping",
	"internal/stdhttp/stream_internal_test.go": "time in a bubble of testing/synctest, where it passes by sleeping",
	"internal/engine/takeover_test.go":         "handlers that block are what is tested",
	"health/health_test.go":                    "time in a bubble of testing/synctest, where it passes by sleeping",
	"topic/replica_test.go":                    "time in a bubble of testing/synctest, where it passes by sleeping",
	"internal/tickets/tickets_test.go":         "time in a bubble of testing/synctest, where it passes by sleeping",
}

func TestNoSleepingTests(t *testing.T) {
	for _, s := range sources(t) {
		if !s.test {
			continue
		}
		for _, at := range sleeps(s) {
			if sleepers[s.path] == "" {
				t.Errorf("%s calls time.Sleep: it is too short on a busy machine and wasted on an idle one; wait for what must happen "+
					"(a channel, testing/synctest), or list the file in sleepers when the sleep itself is what is tested", at)
			}
		}
	}
}

// sleeps returns where a file mentions time.Sleep, as file:line.
func sleeps(s source) (places []string) {
	ast.Inspect(s.syntax, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if pkg, ok := selector.X.(*ast.Ident); ok && pkg.Name == "time" && selector.Sel.Name == "Sleep" {
			at := s.fset.Position(selector.Pos())
			places = append(places, at.Filename+":"+strconv.Itoa(at.Line))
		}
		return true
	})
	return places
}
