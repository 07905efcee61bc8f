//go:build linux

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/dunlinhttp/dunlin/bench/internal/gate"
	"github.com/dunlinhttp/dunlin/bench/internal/layout"
	"github.com/dunlinhttp/dunlin/bench/internal/report"
	"github.com/dunlinhttp/dunlin/bench/internal/results"
	"github.com/dunlinhttp/dunlin/bench/internal/runner"
)

// gateCommand measures the figures that Dunlin promises, or reads them from a file of results. It returns an
// error if a promise is not kept.
func gateCommand(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("compare gate", flag.ContinueOnError)
	var f runFlags
	f.register(flags)
	file := flags.String("results", "", "judge this `file` of results instead of measuring")
	if err := flags.Parse(args); err != nil {
		return errUsage
	}
	promises, err := gate.Promises()
	if err != nil {
		return err
	}
	run, err := gateRun(ctx, f, promises, *file, args)
	if err != nil {
		return err
	}
	return announce(gate.Judge(promises, run))
}

func gateRun(ctx context.Context, f runFlags, promises []gate.Promise, file string, args []string) (*results.Run, error) {
	if file != "" {
		folders, err := layout.Find(".")
		if err != nil {
			return nil, err
		}
		return readRun(folders, file)
	}
	scenarios, peers := gate.Needs(promises)
	if f.scenarios == "" {
		f.scenarios = strings.Join(scenarios, ",")
		if f.benchmarks < 0 {
			f.benchmarks = 6
		}
	}
	if f.peers == "" {
		f.peers = strings.Join(peers, ",")
	}
	options, err := f.options(append([]string{"gate"}, args...))
	if err != nil {
		return nil, err
	}
	watch := newProgress(os.Stdout, os.Stderr)
	env, err := newEnv(f, watch)
	if err != nil {
		return nil, err
	}
	return runner.Run(ctx, env, options, watch)
}

// announce prints the verdicts. It returns an error with the number of promises that are not kept.
func announce(verdicts []gate.Verdict) error {
	table := report.Table{Heading: []string{"promise", "bound", "measured", "verdict"}}
	count := map[gate.Outcome]int{}
	for _, v := range verdicts {
		count[v.Outcome]++
		got := results.Format(v.Got)
		if v.Outcome == gate.Unmeasured {
			got = "–"
		}
		table.Rows = append(table.Rows, []string{v.Words, v.Bound(), got, v.Outcome.String()})
	}
	fmt.Print(table.Text())
	if bad := count[gate.Broken] + count[gate.Unmeasured]; bad > 0 {
		return fmt.Errorf("%d of %d promises broken, %d not measured", count[gate.Broken], len(verdicts), count[gate.Unmeasured])
	}
	fmt.Printf("%d promises kept, %d of them within tolerance\n", len(verdicts), count[gate.Close])
	return nil
}
