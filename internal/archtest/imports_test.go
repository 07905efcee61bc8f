package archtest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// floors has the layers of the architecture, the lowest first. A package may import only packages of lower layers. A name
// includes the folder and everything below it; "" is only the root. The longest matching name applies.
var floors = [][]string{
	{"internal/admission", "internal/invariants", "internal/semantics", "internal/view"},
	{
		"backend",
		"internal/backlog",
		"internal/bytesize",
		"internal/caller",
		"internal/certfile",
		"internal/clientaddr",
		"internal/devcert",
		"internal/feature",
		"internal/files",
		"internal/gcpace",
		"internal/gcra",
		"internal/hpack",
		"internal/http1",
		"internal/httpcache",
		"internal/jsonwire",
		"internal/lifecycle",
		"internal/logqueue",
		"internal/memory",
		"internal/pgtest",
		"internal/overload",
		"internal/proxyproto",
		"internal/sse",
		"internal/suspend",
		"internal/tally",
		"internal/textvalue",
		"internal/tickets",
		"internal/tlsmem",
		"internal/urlquery",
		"internal/watchbody",
		"internal/ws",
		"router",
	},
	{
		"internal/envconfig",
		"internal/engine",
		"internal/exchange",
		"internal/http2",
		"internal/schema",
		"lowmem",
		"resilience",
		"stats",
		"store",
	},
	{"internal/peers", "internal/request"},
	{"internal/looph2", "internal/problem", "internal/rewrite", "internal/stdwriter", "observe", "store/storetest"},
	{
		"internal/loophttp",
		"internal/memhttp",
		"internal/stdhttp",
	},
	{""},
	{"ext"},
	{"datastar", "dunlintest", "htmx", "negotiate", "templates", "webhook", "websocket"},
	{
		"health",
		"internal/suite",
		"middleware",
		"topic",
		"typed",
	},
	{"internal/topictest", "openapi"},
	{
		"cmd",
		"docs",
		"examples",
		"internal/archtest",
	},
}

// floor returns the index of a folder's layer, or -1 if it has none.
func floor(folder string) int {
	found, longest := -1, -1
	for n, names := range floors {
		for _, name := range names {
			if (folder == name || name != "" && strings.HasPrefix(folder, name+"/")) && len(name) > longest {
				found, longest = n, len(name)
			}
		}
	}
	return found
}

func TestImportsPointDown(t *testing.T) {
	for _, s := range sources(t) {
		from := floor(s.folder)
		if from < 0 {
			t.Errorf("%s: folder %q has no floor in the house: add it to floors, so that it is decided who may import it", s.path, s.folder)
			continue
		}
		for _, path := range s.imports(t) {
			folder, ours := ofCore(path)
			if !ours || s.test && folder == s.folder {
				continue // a foo_test package imports the tested package
			}
			switch to := floor(folder); {
			case to < 0:
				t.Errorf("%s imports %s, which has no floor in the house: add it to floors", s.path, path)
			case s.test && (folder == "" || folder == "internal/suite" || folder == "internal/topictest"):
				// Behaviour that is visible only in an app is tested with an app, in the folder of the package that
				// implements it. topictest has cases for package topic and for stores.
			case s.test && to <= from:
				// Tests may import packages of their own layer, such as a twin or a helper.
			case to >= from:
				t.Errorf("%s imports %s: imports point down only, so that a package is understood from itself and what lies below it, "+
					"and can be tested without what lies above (floor %d imports floor %d)", s.path, path, from, to)
			}
		}
	}
}

// A ban lists the packages that the non-test files of a folder must not import, with the reason.
type ban struct {
	folder string
	paths  []string // packages of the standard library, or of this module
	below  bool     // also packages below the paths
	reason string
}

var bans = []ban{
	{"internal/http1", []string{"net", "net/http", "os", "syscall"}, false, "it is bytes in, messages out: without I/O every split of an input can be tested and fuzzed"},
	{"internal/http2", []string{"net", "net/http", "os", "syscall", "time"}, false, "it is bytes in, events out: without I/O and clock every order of frames can be tested and fuzzed"},
	{"internal/hpack", []string{"net", "net/http", "os", "syscall"}, false, "it is bytes in, fields out: without I/O every block can be tested and fuzzed"},
	{"internal/ws", []string{"net", "net/http", "os", "syscall", "time"}, false, "it is bytes in, frames out: without I/O and clock every split of an input can be tested and fuzzed"},
	{"internal/jsonwire", []string{"net", "net/http", "os", "syscall"}, false, "it appends to a slice: it must not know where the bytes go"},
	{"internal/lifecycle", []string{"net/http"}, false, "it starts and stops servers, whatever they speak"},
	{"router", []string{"net", "net/http", "os", "syscall"}, false, "it finds a route for strings and can be used without any server"},
	{"internal/stdhttp", []string{module, module + "/internal/engine", module + "/router"}, false, "an adapter knows its protocol and the seam, internal/exchange: what a request means, and what else serves, is decided above"},
	{"internal/loophttp", []string{module, module + "/router"}, false, "an adapter knows its protocol and the seam, internal/exchange: what a request means is decided above"},
	{"internal/memhttp", []string{module, module + "/router"}, false, "it is the smallest adapter, and shows that the seam is enough"},
	{"internal/exchange", []string{module, module + "/internal/engine", module + "/internal/http1", module + "/internal/lifecycle", module + "/router"}, false, "it is what protocols and the pipeline have in common, and knows neither: what it shares with them is in internal/semantics"},
	{"internal/semantics", []string{"net", "net/http", "os", "syscall", "time"}, false, "all protocols and the router share it: it must not belong to one of them"},
	{"", []string{module + "/internal/engine"}, false, "event loops are internal/loophttp's: the root knows adapters, not what they stand on"},
	{"internal/engine", []string{"net/http", module + "/internal/http1", module + "/internal/jsonwire", module + "/router"}, true, "it moves bytes and knows no HTTP: what they mean is its Handler's business"},
}

func TestBannedImports(t *testing.T) {
	for _, s := range sources(t) {
		if s.test {
			continue // tests compare with net/http on purpose
		}
		for _, b := range bans {
			if s.folder != b.folder && !strings.HasPrefix(s.folder, b.folder+"/") {
				continue
			}
			for _, path := range s.imports(t) {
				for _, banned := range b.paths {
					if path == banned || b.below && strings.HasPrefix(path, banned+"/") {
						t.Errorf("%s imports %s, but %s: %s", s.path, path, b.folder, b.reason)
					}
				}
			}
		}
	}
}

const onlyDependency = "golang.org/x/"

func TestNoDependencies(t *testing.T) {
	const reason = "the core stands on the standard library and golang.org/x alone, so that taking Dunlin means trusting nobody else"
	for _, s := range sources(t) {
		for _, path := range s.imports(t) {
			first, _, _ := strings.Cut(path, "/")
			_, ours := ofCore(path)
			if strings.Contains(first, ".") && !ours && !strings.HasPrefix(path, onlyDependency) {
				t.Errorf("%s imports %s: %s", s.path, path, reason)
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(words) >= 2 && strings.HasPrefix(words[1], "v") && !strings.HasPrefix(words[0], onlyDependency) {
			t.Errorf("go.mod requires %s: %s", words[0], reason)
		}
		if strings.HasPrefix(line, "replace") || strings.HasPrefix(line, "tool") {
			t.Errorf("go.mod says %q: replacements reach nobody who imports the module, and tools have tools/go.mod", strings.TrimSpace(line))
		}
	}
}
