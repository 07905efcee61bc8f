//go:build linux

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/google/pprof/profile"

	"github.com/dunlinhttp/dunlin/bench/internal/flame"
	"github.com/dunlinhttp/dunlin/bench/internal/peer"
	"github.com/dunlinhttp/dunlin/bench/internal/report"
	"github.com/dunlinhttp/dunlin/bench/internal/results"
	"github.com/dunlinhttp/dunlin/bench/internal/scenario"
)

const profileUsage = "usage: compare profile [flags] SCENARIO PEER..., such as: compare profile plaintext-64 dunlin nethttp fiber"

// profileCommand takes profiles of servers under the load of a scenario and draws them as flame
// graphs, side by side.
func profileCommand(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("compare profile", flag.ContinueOnError)
	duration := flags.Duration("duration", 5*time.Second, "how long each server is profiled")
	withReport := flags.Bool("report", false, "write docs/BENCHMARKS.md anew, which links the pages")
	if err := flags.Parse(args); err != nil {
		return errUsage
	}
	if flags.NArg() < 2 {
		return fmt.Errorf("profile needs a scenario and a peer or more; %s", profileUsage)
	}
	scenarios, err := scenario.Named(flags.Args()[:1])
	if err != nil {
		return err
	}
	peers, err := peer.Named(flags.Args()[1:])
	if err != nil {
		return err
	}
	for _, p := range peers {
		if err := scenarios[0].Profilable(p); err != nil {
			return err
		}
	}
	watch := newProgress(os.Stdout, os.Stderr)
	env, err := newEnv(runFlags{duration: *duration}, watch)
	if err != nil {
		return err
	}
	defer env.Close()
	if err := env.StartBackend(ctx, peers); err != nil {
		return err
	}
	page, err := profileAll(ctx, env, scenarios[0], peers, watch)
	if err != nil {
		return err
	}
	if err := page.Write(env.Folders.Docs, env.Folders.Results); err != nil {
		return err
	}
	watch.Note("wrote %s; the profiles themselves are in %s, for go tool pprof",
		filepath.Join(env.Folders.Docs, report.ProfileFolder, page.Scenario+".html"), profileFiles(env))
	if !*withReport {
		return nil
	}
	run, err := readRun(env.Folders, "")
	if err != nil {
		return err
	}
	return writeReport(env.Folders, run)
}

func profileAll(ctx context.Context, env *scenario.Env, s scenario.Scenario, peers []peer.Peer, watch *progress) (*report.ProfilePage, error) {
	page := &report.ProfilePage{
		Scenario: s.Name, Title: s.Title, About: s.About, Command: s.Commands(env)[0],
		Started: time.Now().UTC().Truncate(time.Second), Go: runtime.Version(), Every: s.SampledEvery(),
	}
	// Without git the commit is unknown.
	commit, _ := exec.CommandContext(ctx, "git", "-C", env.Folders.Root, "rev-parse", "--short=10", "HEAD").Output()
	page.Commit = strings.TrimSpace(string(commit))
	for i, p := range peers {
		p, err := p.Profiled()
		if err != nil {
			return nil, err
		}
		watch.Step(2*i+1, 2*len(peers), "build "+p.Name)
		built, err := peer.Build(ctx, env.Folders, p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		watch.Step(2*i+2, 2*len(peers), "profile "+p.Name)
		taken, err := env.Profile(ctx, s, built)
		if err != nil {
			return nil, err
		}
		if err := keep(profileFiles(env), s.Name+"-"+p.Name, taken); err != nil {
			return nil, err
		}
		page.Servers = append(page.Servers, report.ProfiledServer{Name: p.Name, Version: built.Version})
		if err := draw(page, taken); err != nil {
			return nil, fmt.Errorf("profiles of %s: %w", p.Name, err)
		}
	}
	watch.clear()
	return page, nil
}

// draw adds the flame graphs of a server to the page. The server must be the last one of the page.
func draw(page *report.ProfilePage, taken scenario.Profiles) error {
	cpu, err := flame.Tree(taken.CPU, "cpu")
	if err != nil {
		return err
	}
	page.Add("cpu", "processor time", duration(cpu.Total)+" sampled", duration, cpu)
	heap, err := flame.Tree(taken.Heap, "inuse_space")
	if err != nil {
		return err
	}
	page.Add("heap", "heap in use", size(heap.Total), size, heap)
	for _, kind := range []struct {
		file, title, sampleType, unit string
		format                        func(float64) string
	}{
		{"alloc-objects", "allocations", "alloc_objects", "", results.Format},
		{"alloc-bytes", "allocated bytes", "alloc_space", " B", results.Format},
	} {
		tree, err := flame.Tree(taken.Allocs, kind.sampleType)
		if err != nil {
			return err
		}
		perRequest := func(v int64) string {
			return kind.format(float64(v)/float64(max(taken.Requests, 1))) + kind.unit + "/request"
		}
		page.Add(kind.file, kind.title, perRequest(tree.Total), perRequest, tree)
	}
	return nil
}

func duration(ns int64) string { return results.Format(float64(ns)/1e6) + " ms" }

func size(bytes int64) string {
	if bytes < 100_000 {
		return results.Format(float64(bytes)/1e3) + " KB"
	}
	return results.Format(float64(bytes)/1e6) + " MB"
}

// profileFiles returns the folder for the profiles.
func profileFiles(env *scenario.Env) string { return filepath.Join(env.Folders.Build, "profiles") }

func keep(folder, name string, taken scenario.Profiles) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("keep profiles: %w", err)
	}
	for kind, p := range map[string]*profile.Profile{"cpu": taken.CPU, "heap": taken.Heap, "allocs": taken.Allocs} {
		f, err := os.Create(filepath.Join(folder, name+"-"+kind+".pb.gz"))
		if err != nil {
			return fmt.Errorf("keep profiles: %w", err)
		}
		if err := p.Write(f); err != nil {
			f.Close()
			return fmt.Errorf("keep profiles: %w", err)
		}
		if err := f.Close(); err != nil {
			return fmt.Errorf("keep profiles: %w", err)
		}
	}
	return nil
}
