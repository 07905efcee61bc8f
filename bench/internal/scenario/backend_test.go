//go:build linux

package scenario

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/dunlinhttp/dunlin/bench/internal/layout"
	"github.com/dunlinhttp/dunlin/bench/internal/peer"
	"github.com/dunlinhttp/dunlin/bench/internal/proc"
)

func TestDatabasePeersPassChecks(t *testing.T) {
	folders, err := layout.Find(".")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(folders.Build, 0o755); err != nil {
		t.Fatal(err)
	}
	peers, err := peer.Named([]string{"dunlin-db", "dunlin-std-db", "nethttp-db"})
	if err != nil {
		t.Fatal(err)
	}
	e := &Env{Folders: folders, Self: filepath.Join(t.TempDir(), "compare")}
	build := proc.Command{Path: "go", Args: []string{"build", "-o", e.Self, "./cmd/compare"}, Dir: folders.Bench}
	if out, err := proc.Run(t.Context(), build); err != nil {
		t.Fatal(err, out)
	}
	defer e.Close()
	if err := e.StartBackend(t.Context(), peers); WithoutDatabase(err) && os.Getenv("DUNLIN_REQUIRE_ALL") == "" {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	for _, p := range peers {
		built, err := peer.Build(t.Context(), folders, p)
		if err != nil {
			t.Fatal(err)
		}
		failed, err := e.Verify(t.Context(), built)
		if err != nil {
			t.Fatal(err)
		}
		for check, why := range failed {
			t.Errorf("%s, %s: got %s", p.Name, check, why)
		}
	}
}
