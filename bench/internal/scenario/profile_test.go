//go:build linux

package scenario

import (
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/dunlinhttp/dunlin/bench/internal/layout"
	"github.com/dunlinhttp/dunlin/bench/internal/peer"
	"github.com/dunlinhttp/dunlin/bench/internal/proc"
)

func TestProfile(t *testing.T) {
	if _, err := exec.LookPath("wrk"); err != nil {
		if os.Getenv("DUNLIN_REQUIRE_ALL") != "" {
			t.Fatal("DUNLIN_REQUIRE_ALL is set: wrk is not installed")
		}
		t.Skip("wrk is not installed")
	}
	folders, err := layout.Find(".")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(folders.Build, 0o755); err != nil {
		t.Fatal(err)
	}
	scenarios, err := Named([]string{"json"})
	if err != nil {
		t.Fatal(err)
	}
	cores, _ := proc.Assign()
	e := &Env{Folders: folders, Cores: cores, Duration: time.Second}
	for _, name := range []string{peer.NetHTTP, peer.Dunlin} { // with profiles on a port of their own, and among the routes
		peers, err := peer.Named([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		p, err := peers[0].Profiled()
		if err != nil {
			t.Fatal(err)
		}
		built, err := peer.Build(t.Context(), folders, p)
		if err != nil {
			t.Fatal(err)
		}
		got, err := e.Profile(t.Context(), scenarios[0], built)
		if err != nil {
			t.Fatal(err)
		}
		for kind, p := range map[string]*profile.Profile{"cpu": got.CPU, "inuse_space": got.Heap, "alloc_space": got.Allocs} {
			if !slices.ContainsFunc(p.SampleType, func(t *profile.ValueType) bool { return t.Type == kind }) {
				t.Errorf("%s: got a profile without %s", name, kind)
			}
		}
		if got.Requests == 0 || len(got.Allocs.Sample) == 0 || len(got.Heap.Sample) == 0 {
			t.Errorf("%s: got %d requests, %d allocation sites, %d heap samples", name, got.Requests, len(got.Allocs.Sample), len(got.Heap.Sample))
		}
		objects := slices.IndexFunc(got.Allocs.SampleType, func(t *profile.ValueType) bool { return t.Type == "alloc_objects" })
		var allocs int64
		for _, sample := range got.Allocs.Sample {
			allocs += sample.Value[objects]
		}
		if per := float64(allocs) / float64(got.Requests); name == peer.NetHTTP && per < 10 || name == peer.Dunlin && per > 1 {
			t.Errorf("%s: got %.1f allocations a request, in %d requests", name, per, got.Requests)
		}
	}
}
