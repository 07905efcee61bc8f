package archtest_test

import (
	"go/build/constraint"
	"slices"
	"strings"
	"testing"
)

// Users of Dunlin read the root folder first. These bounds keep it small.
const (
	maxRootFiles = 45
	maxRootLines = 6600
)

const shopWindow = "the root folder is the public API and the pipeline that joins it: what speaks a protocol belongs to an adapter, " +
	"other machinery to a package of its own below internal/"

func TestRootIsBounded(t *testing.T) {
	files, lines := 0, 0
	for _, s := range sources(t) {
		if s.folder == "" && !s.test {
			files++
			lines += s.lines
		}
	}
	if files > maxRootFiles || lines > maxRootLines {
		t.Errorf("the root has %d source files with %d lines, more than %d with %d: %s", files, lines, maxRootFiles, maxRootLines, shopWindow)
	}
}

// systems are the operating systems in file names and build constraints.
var systems = []string{"linux", "unix", "darwin", "freebsd", "netbsd", "openbsd", "windows", "plan9", "wasm", "amd64", "arm64", "386", "other"}

func TestRootKnowsNoSystem(t *testing.T) {
	for _, s := range sources(t) {
		if s.folder != "" || s.test {
			continue
		}
		for _, word := range strings.Split(strings.TrimSuffix(s.path, ".go"), "_") {
			if slices.Contains(systems, word) {
				t.Errorf("%s is named after a system: %s", s.path, shopWindow)
			}
		}
		for _, group := range s.syntax.Comments {
			for _, c := range group.List {
				if constraint.IsGoBuild(c.Text) {
					t.Errorf("%s has a build constraint, %s: %s", s.path, c.Text, shopWindow)
				}
			}
		}
	}
}
