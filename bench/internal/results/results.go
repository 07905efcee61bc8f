// Package results has the record of a run of the comparison: the measurements, the servers that were compared, and the
// machine.
package results

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A Run is the content of one file in bench/results.
type Run struct {
	Started    time.Time   `json:"started"`
	Took       string      `json:"took"`
	Commit     string      `json:"commit"`
	Modified   bool        `json:"modified,omitzero"` // the working tree differed from the commit
	Options    string      `json:"options"`
	Machine    Machine     `json:"machine"`
	Others     float64     `json:"others"` // share of the time of all cores that other programs used at least
	Peers      []Peer      `json:"peers"`
	Scenarios  []Scenario  `json:"scenarios"`
	Benchmarks []Benchmark `json:"benchmarks,omitempty"`

	Additions []Addition `json:"-"` // see Add
}

// An Addition is a later run of some of the scenarios.
type Addition struct {
	*Run
	Titles []string // of the scenarios
}

// Add adds the scenarios of a later run. They replace scenarios that both runs have.
func (r *Run) Add(more *Run) {
	added := Addition{Run: more}
	for _, s := range more.Scenarios {
		added.Titles = append(added.Titles, s.Title)
		if old := r.Scenario(s.Name); old != nil {
			*old = s
		} else {
			r.Scenarios = append(r.Scenarios, s)
		}
	}
	for _, p := range more.Peers {
		if i := slices.IndexFunc(r.Peers, func(old Peer) bool { return old.Name == p.Name }); i < 0 {
			r.Peers = append(r.Peers, p)
		}
	}
	r.Additions = append(r.Additions, added)
}

// Date returns the day on which the run began.
func (r *Run) Date() string { return r.Started.Format("2 January 2006") }

// Names returns the titles of the scenarios in one line.
func (a Addition) Names() string { return strings.Join(a.Titles, "; ") }

// Machine describes the machine on which a run took place.
type Machine struct {
	CPU    string            `json:"cpu"`
	Cores  int               `json:"cores"`
	Memory string            `json:"memory"`
	Kernel string            `json:"kernel"`
	Go     string            `json:"go"`
	Tools  map[string]string `json:"tools"`
	Pinned bool              `json:"pinned"` // the server and the load each had a core of their own
}

// A Peer is a server that was compared, or one that was not, with the reason.
type Peer struct {
	Name     string `json:"name"`
	Language string `json:"language"`
	Version  string `json:"version,omitempty"`
	Command  string `json:"command,omitempty"`
	Skipped  string `json:"skipped,omitempty"`
	// Failed has the checks whose responses differed from the reference service, with the differences. Scenarios that need
	// these checks omit the peer.
	Failed map[string]string `json:"failed,omitempty"`
}

// A Scenario has the rounds of a scenario for each peer.
type Scenario struct {
	Name     string   `json:"name"`
	Title    string   `json:"title"`
	About    string   `json:"about"`
	Commands []string `json:"commands"`
	Metrics  []string `json:"metrics"` // keys, in the order of the columns
	Rows     []Row    `json:"rows"`
}

// A Row has the rounds of a peer in a scenario.
type Row struct {
	Peer   string   `json:"peer"`
	Rounds []Sample `json:"rounds"`
	Failed string   `json:"failed,omitempty"`
	Series *Series  `json:"series,omitempty"` // values that the scenario records over time, from the last round
}

// A Series has values of a quantity at regular intervals.
type Series struct {
	Name   string    `json:"name"`
	Every  float64   `json:"every_s"`
	Values []float64 `json:"values"`
}

// A Sample has the values of a round by the key of the metric.
type Sample map[string]float64

// A Benchmark has the repetitions of a Go benchmark.
type Benchmark struct {
	Package string               `json:"package"`
	Name    string               `json:"name"`
	Values  map[string][]float64 `json:"values"` // by unit, such as "ns/op"
}

// Values returns the values of the metric with the given key, in the order of the rounds.
func (r Row) Values(key string) []float64 {
	var values []float64
	for _, round := range r.Rounds {
		if v, measured := round[key]; measured {
			values = append(values, v)
		}
	}
	return values
}

// Disturbed describes the load by other programs if it was higher than the usual background activity of a system.
// Otherwise the result is empty.
func (r *Run) Disturbed() string {
	const housekeeping = 0.03
	if r.Others <= housekeeping {
		return ""
	}
	return fmt.Sprintf("Other programs took at least %.0f %% of the cores' time meanwhile: the figures are worse than on a quiet machine.", 100*r.Others)
}

// Scenario returns the scenario with the given name, or nil.
func (r *Run) Scenario(name string) *Scenario {
	for i := range r.Scenarios {
		if r.Scenarios[i].Name == name {
			return &r.Scenarios[i]
		}
	}
	return nil
}

// Row returns the row of the peer with the given name, or nil.
func (s *Scenario) Row(peer string) *Row {
	for i := range s.Rows {
		if s.Rows[i].Peer == peer {
			return &s.Rows[i]
		}
	}
	return nil
}

// Benchmark returns the benchmark with the given name, or nil.
func (r *Run) Benchmark(name string) *Benchmark {
	for i := range r.Benchmarks {
		if r.Benchmarks[i].Name == name {
			return &r.Benchmarks[i]
		}
	}
	return nil
}

// FileName returns a name for the file of the run. The names of runs sort by time.
func (r *Run) FileName() string {
	commit := r.Commit[:min(len(r.Commit), 10)]
	if commit == "" {
		commit = "nocommit"
	}
	return r.Started.UTC().Format("2006-01-02T150405Z") + "-" + commit + ".json"
}

// Write writes the run to a file in folder and returns its path.
func (r *Run) Write(folder string) (string, error) {
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return "", fmt.Errorf("write results: %w", err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("write results: %w", err)
	}
	path := filepath.Join(folder, r.FileName())
	if err := os.WriteFile(path, append(data, '\n'), 0o644); err != nil {
		return "", fmt.Errorf("write results: %w", err)
	}
	return path, nil
}

// Read reads a run from a file.
func Read(path string) (*Run, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read results: %w", err)
	}
	run := new(Run)
	if err := json.Unmarshal(data, run); err != nil {
		return nil, fmt.Errorf("read results: %s: %w", path, err)
	}
	return run, nil
}

// Newest returns the path of the newest of the runs in folder that have the most scenarios. A run of two scenarios does
// not replace a run of all scenarios.
func Newest(folder string) (string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return "", err
	}
	slices.Sort(files) // the names sort by time
	newest, most := "", -1
	for _, file := range files {
		run, err := Read(file)
		if err != nil {
			return "", err
		}
		if len(run.Scenarios) >= most {
			newest, most = file, len(run.Scenarios)
		}
	}
	if newest == "" {
		return "", fmt.Errorf("no results in %s yet, run the comparison first: %w", folder, fs.ErrNotExist)
	}
	return newest, nil
}
