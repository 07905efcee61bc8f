//go:build linux

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/dunlinhttp/dunlin/bench/internal/layout"
	"github.com/dunlinhttp/dunlin/bench/internal/peer"
	"github.com/dunlinhttp/dunlin/bench/internal/proc"
	"github.com/dunlinhttp/dunlin/bench/internal/runner"
	"github.com/dunlinhttp/dunlin/bench/internal/scenario"
)

// runFlags are the flags of a measurement. The gate has the same flags.
type runFlags struct {
	scenarios, peers string
	rounds           int
	duration         time.Duration
	short            bool
	benchmarks       int
}

func (f *runFlags) register(flags *flag.FlagSet) {
	flags.StringVar(&f.scenarios, "scenario", "", "only these scenarios, by `names` with commas")
	flags.StringVar(&f.peers, "peer", "", "only these peers, by `names` with commas")
	flags.IntVar(&f.rounds, "rounds", 0, "rounds of each scenario (0: 6, with -short 1); slow scenarios have their own maximum")
	flags.DurationVar(&f.duration, "duration", 0, "usual length of a measurement (0: 500ms)")
	flags.BoolVar(&f.short, "short", false, "a few scenarios, a few peers, fewer clients: a first look in under three minutes")
	flags.IntVar(&f.benchmarks, "benchmarks", -1, "repetitions of the Go benchmarks (-1: 6, with -short or -scenario 0)")
}

// options converts the flags to options. For an unknown name it returns an error that lists the
// known names.
func (f *runFlags) options(args []string) (runner.Options, error) {
	o := runner.Options{Rounds: f.rounds, Benchmarks: f.benchmarks, Text: strings.Join(args, " "), Peers: peer.All}
	if o.Rounds <= 0 {
		o.Rounds = 6
		if f.short {
			o.Rounds = 1
		}
	}
	if f.duration <= 0 {
		f.duration = 500 * time.Millisecond
	}
	if o.Benchmarks < 0 {
		o.Benchmarks = 6
		if f.short || f.scenarios != "" {
			o.Benchmarks = 0
		}
	}
	if f.short {
		o.Peers = slices.DeleteFunc(slices.Clone(o.Peers), func(p peer.Peer) bool { return !p.InShort })
	}
	var err error
	if f.peers != "" {
		if o.Peers, err = peer.Named(strings.Split(f.peers, ",")); err != nil {
			return o, err
		}
	}
	if f.scenarios != "" {
		if o.Scenarios, err = scenario.Named(strings.Split(f.scenarios, ",")); err == nil && f.peers == "" {
			o.Peers = takingPart(o)
		}
		return o, err
	}
	for _, s := range scenario.All {
		if s.InShort || !f.short {
			o.Scenarios = append(o.Scenarios, s)
		}
	}
	if f.peers == "" {
		o.Peers = takingPart(o)
	}
	return o, nil
}

// takingPart returns the peers that take part in at least one scenario. Other peers need not be
// built.
func takingPart(o runner.Options) []peer.Peer {
	return slices.DeleteFunc(slices.Clone(o.Peers), func(p peer.Peer) bool {
		return !slices.ContainsFunc(o.Scenarios, func(s scenario.Scenario) bool { return s.Takes(p, nil) })
	})
}

func newEnv(f runFlags, watch *progress) (*scenario.Env, error) {
	folders, err := layout.Find(".")
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(folders.Build, 0o755); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cores, pinned := proc.Assign()
	if !pinned {
		watch.Note("one core only: server and load share it, and the figures say little")
	}
	return &scenario.Env{Folders: folders, Cores: cores, Duration: f.duration, Short: f.short, Self: self}, nil
}

func runCommand(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	var f runFlags
	f.register(flags)
	withReport := flags.Bool("report", false, "write docs/BENCHMARKS.md and its charts from the results")
	if err := flags.Parse(args); err != nil {
		return errUsage
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("no command is called %q; there are report, diff, gate, profile and list", flags.Arg(0))
	}
	options, err := f.options(args)
	if err != nil {
		return err
	}
	watch := newProgress(os.Stdout, os.Stderr)
	env, err := newEnv(f, watch)
	if err != nil {
		return err
	}
	run, err := runner.Run(ctx, env, options, watch)
	if err != nil {
		return err
	}
	path, err := run.Write(env.Folders.Results)
	if err != nil {
		return err
	}
	if disturbed := run.Disturbed(); disturbed != "" {
		watch.Note("%s", disturbed)
	}
	watch.Note("%s, results in %s", run.Took, path)
	if *withReport {
		return writeReport(env.Folders, run)
	}
	return nil
}

func listCommand() error {
	fmt.Println("scenarios:")
	for _, s := range scenario.All {
		fmt.Printf("  %-18s %s\n", s.Name, s.Title)
	}
	fmt.Println("peers:")
	for _, p := range peer.All {
		fmt.Printf("  %-18s %s\n", p.Name, p.Language)
	}
	return nil
}
