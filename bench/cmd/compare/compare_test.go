//go:build linux

package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/bench/internal/gate"
	"github.com/dunlinhttp/dunlin/bench/internal/peer"
	"github.com/dunlinhttp/dunlin/bench/internal/results"
	"github.com/dunlinhttp/dunlin/bench/internal/scenario"
)

func TestOptions(t *testing.T) {
	all, err := (&runFlags{benchmarks: -1}).options(nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(all.Scenarios) != len(scenario.All) || len(all.Peers) != len(peer.All) || all.Rounds != 6 || all.Benchmarks != 6 {
		t.Errorf("without flags: got %d scenarios, %d peers, %d rounds, %d repetitions",
			len(all.Scenarios), len(all.Peers), all.Rounds, all.Benchmarks)
	}
	short, err := (&runFlags{short: true, benchmarks: -1}).options(nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(short.Scenarios) >= len(all.Scenarios) || len(short.Peers) >= len(all.Peers) || short.Rounds != 1 || short.Benchmarks != 0 {
		t.Errorf("-short: got %d scenarios, %d peers, %d rounds, %d repetitions",
			len(short.Scenarios), len(short.Peers), short.Rounds, short.Benchmarks)
	}
	stages, err := (&runFlags{scenarios: "stages"}).options(nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(stages.Peers) != len(peer.Stages) {
		t.Errorf("of one scenario: got %d peers, want the %d that take part", len(stages.Peers), len(peer.Stages))
	}
	f := &runFlags{scenarios: "json,users", peers: "chi", rounds: 7, duration: 4 * time.Second, benchmarks: 2}
	some, err := f.options(nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(some.Scenarios) != 2 || len(some.Peers) != 1 || some.Rounds != 7 || some.Benchmarks != 2 || f.duration != 4*time.Second {
		t.Errorf("with flags: got %d scenarios, %d peers, %d rounds, %d repetitions, %v",
			len(some.Scenarios), len(some.Peers), some.Rounds, some.Benchmarks, f.duration)
	}
}

func TestUnknownNames(t *testing.T) {
	for _, args := range [][]string{
		{"-scenario", "jason"}, {"-peer", "ginn"}, {"compere"}, {"load"}, {"diff", "one"}, {"report", "no-such-file"},
		{"profile"}, {"profile", "json"}, {"profile", "jason", "dunlin"}, {"profile", "json", "ginn"}, {"profile", "json", "nginx"},
		{"profile", "overload", "dunlin"}, {"profile", "from-std", "fiber"},
	} {
		err := command(t.Context(), args)
		if err == nil || errors.Is(err, errUsage) {
			t.Errorf("compare %s: %v, want an error with the reason", strings.Join(args, " "), err)
		}
	}
}

func TestAnnounce(t *testing.T) {
	bound := 1.0
	promise := gate.Promise{Words: "it holds", AtMost: &bound}
	kept := []gate.Verdict{{Promise: promise, Outcome: gate.Kept}, {Promise: promise, Outcome: gate.Close}}
	if err := announce(kept); err != nil {
		t.Errorf("all promises hold: %v", err)
	}
	for _, outcome := range []gate.Outcome{gate.Broken, gate.Unmeasured} {
		if err := announce(append(kept, gate.Verdict{Promise: promise, Outcome: outcome})); err == nil {
			t.Errorf("one promise %v: got no error", outcome)
		}
	}
}

func TestProgress(t *testing.T) {
	var tables, status bytes.Buffer
	p := &progress{tables: &tables, status: &status, start: time.Now()}
	p.Step(1, 2, "json, round 1 of 1: chi")
	p.Skipped("axum", "cargo is not installed")
	p.Differs("gin", map[string]string{"json": "/json: status 404"})
	p.Finished(results.Scenario{
		Name: "json", Title: "JSON", Commands: []string{"wrk"}, Metrics: []string{results.CPU.Key},
		Rows: []results.Row{{Peer: "chi", Rounds: []results.Sample{{results.CPU.Key: 9.5}}}},
	})
	for _, want := range []string{"[1/2 ", "without axum: cargo is not installed", "gin differs from the reference"} {
		if !strings.Contains(status.String(), want) {
			t.Errorf("got a status without %q:\n%s", want, &status)
		}
	}
	for _, want := range []string{"JSON (json)", "wrk", "chi", "9.50"} {
		if !strings.Contains(tables.String(), want) {
			t.Errorf("got tables without %q:\n%s", want, &tables)
		}
	}
}
