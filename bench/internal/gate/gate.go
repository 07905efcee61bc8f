// Package gate has the list of the figures that Dunlin promises, and compares the results of a run with them.
package gate

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/dunlinhttp/dunlin/bench/internal/results"
	"github.com/dunlinhttp/dunlin/bench/internal/stats"
)

//go:embed promises.json
var promisesJSON []byte

// A Promise is a bound for a figure, or for the ratio of two figures.
type Promise struct {
	Words string `json:"promise"`
	Of    Figure `json:"of"`
	Per   Figure `json:"per,omitzero"` // if it is zero, the bound applies to the figure itself, and otherwise to the ratio

	AtMost  *float64 `json:"at_most,omitempty"`
	AtLeast *float64 `json:"at_least,omitempty"`
	// Tolerance is the share of the bound by which a run may exceed it, because of noise on a quiet machine. Counts have no
	// tolerance.
	Tolerance float64 `json:"tolerance,omitempty"`
}

// A Figure names a median: the median of a metric of a peer in a scenario, or of a value of a Go benchmark.
type Figure struct {
	Scenario  string `json:"scenario,omitempty"`
	Peer      string `json:"peer,omitempty"`
	Metric    string `json:"metric,omitempty"`
	Benchmark string `json:"benchmark,omitempty"`
	Unit      string `json:"unit,omitempty"`
}

// Promises returns the list in promises.json, which is embedded in the program.
func Promises() ([]Promise, error) {
	var promises []Promise
	if err := json.Unmarshal(promisesJSON, &promises); err != nil {
		return nil, fmt.Errorf("read the promises: %w", err)
	}
	for i, p := range promises {
		if err := p.validate(); err != nil {
			return nil, fmt.Errorf("promise %d, %q: %w", i+1, p.Words, err)
		}
	}
	return promises, nil
}

func (p Promise) validate() error {
	if p.Words == "" {
		return errors.New("it has no words")
	}
	if (p.AtMost == nil) == (p.AtLeast == nil) {
		return errors.New("it needs either at_most or at_least")
	}
	if p.Tolerance < 0 || p.Tolerance > 0.2 {
		return errors.New("its tolerance is not between 0 and 0.2")
	}
	if err := p.Of.validate(); err != nil {
		return err
	}
	if p.Per == (Figure{}) {
		return nil
	}
	return p.Per.validate()
}

func (f Figure) validate() error {
	served := f.Scenario != "" && f.Peer != "" && f.Metric != ""
	benchmarked := f.Benchmark != "" && f.Unit != ""
	if served == benchmarked {
		return fmt.Errorf("%+v names neither a scenario's figure nor a benchmark's", f)
	}
	return nil
}

// median returns the median. It returns false if the run does not have the figure.
func (f Figure) median(run *results.Run) (float64, bool) {
	var values []float64
	if f.Benchmark != "" {
		if b := run.Benchmark(f.Benchmark); b != nil {
			values = b.Values[f.Unit]
		}
	} else if s := run.Scenario(f.Scenario); s != nil {
		if row := s.Row(f.Peer); row != nil {
			values = row.Values(f.Metric)
		}
	}
	return stats.Summarise(values).Median, len(values) > 0
}

// An Outcome is the result of the comparison with a promise.
type Outcome int

// A promise that was not measured is neither Kept nor Broken.
const (
	Kept Outcome = iota
	Close
	Broken
	Unmeasured
)

func (o Outcome) String() string {
	return [...]string{"kept", "within tolerance", "BROKEN", "not measured"}[o]
}

// A Verdict is the outcome for a promise, with the value that was measured.
type Verdict struct {
	Promise
	Outcome Outcome
	Got     float64
}

// Bound returns the bound as text.
func (v Verdict) Bound() string {
	if v.AtMost != nil {
		return "≤ " + results.Format(*v.AtMost)
	}
	return "≥ " + results.Format(*v.AtLeast)
}

// Judge compares the run with every promise.
func Judge(promises []Promise, run *results.Run) []Verdict {
	verdicts := make([]Verdict, len(promises))
	for i, p := range promises {
		verdicts[i] = p.judge(run)
	}
	return verdicts
}

func (p Promise) judge(run *results.Run) Verdict {
	v := Verdict{Promise: p, Outcome: Unmeasured}
	got, measured := p.Of.median(run)
	if !measured {
		return v
	}
	if p.Per != (Figure{}) {
		per, measured := p.Per.median(run)
		if !measured || per == 0 {
			return v
		}
		got /= per
	}
	v.Got = got
	// over is the share of the bound by which the value exceeds it. If the bound is zero, every other value exceeds it.
	var over float64
	if p.AtMost != nil {
		over = excess(got-*p.AtMost, *p.AtMost)
	} else {
		over = excess(*p.AtLeast-got, *p.AtLeast)
	}
	switch {
	case over <= 0:
		v.Outcome = Kept
	case over <= p.Tolerance:
		v.Outcome = Close
	default:
		v.Outcome = Broken
	}
	return v
}

func excess(by, bound float64) float64 {
	switch {
	case by <= 0:
		return 0
	case bound == 0:
		return math.Inf(1)
	}
	return by / bound
}

// Needs returns the scenarios and peers that the promises need.
func Needs(promises []Promise) (scenarios, peers []string) {
	add := func(list []string, name string) []string {
		if name == "" || slices.Contains(list, name) {
			return list
		}
		return append(list, name)
	}
	for _, p := range promises {
		for _, f := range []Figure{p.Of, p.Per} {
			scenarios, peers = add(scenarios, f.Scenario), add(peers, f.Peer)
		}
	}
	return scenarios, peers
}
