// Package results is the record of one run of the comparer: what was measured, of what, where and how.
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

// Run is one file in bench/results.
type Run struct {
	Started    time.Time   `json:"started"`
	Took       string      `json:"took"`
	Commit     string      `json:"commit"`
	Modified   bool        `json:"modified,omitzero"` // the work tree differed from the commit
	Options    string      `json:"options"`
	Machine    Machine     `json:"machine"`
	Others     float64     `json:"others"` // the least share of all cores' time that other programs took meanwhile
	Peers      []Peer      `json:"peers"`
	Scenarios  []Scenario  `json:"scenarios"`
	Benchmarks []Benchmark `json:"benchmarks,omitempty"`

	Additions []Addition `json:"-"` // see Add
}

// Addition is a later run of some scenarios.
type Addition struct {
	*Run
	Titles []string // of the scenarios
}

// Add takes the scenarios of a later run in place of this run's, or beside them.
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

// Date is the day on which the run began.
func (r *Run) Date() string { return r.Started.Format("2 January 2006") }

// Names are the titles, in one line.
func (a Addition) Names() string { return strings.Join(a.Titles, "; ") }

// Machine is where it ran.
type Machine struct {
	CPU    string            `json:"cpu"`
	Cores  int               `json:"cores"`
	Memory string            `json:"memory"`
	Kernel string            `json:"kernel"`
	Go     string            `json:"go"`
	Tools  map[string]string `json:"tools"`
	Pinned bool              `json:"pinned"` // server and load each had a core of their own
}

// Peer is a server that was compared, or why it was not.
type Peer struct {
	Name     string `json:"name"`
	Language string `json:"language"`
	Version  string `json:"version,omitempty"`
	Command  string `json:"command,omitempty"`
	Skipped  string `json:"skipped,omitempty"`
	// Failed names the checks whose answer was not the reference's, with what differed. The
	// scenarios that need them left the peer out.
	Failed map[string]string `json:"failed,omitempty"`
}

// Scenario holds a scenario's rounds, peer by peer.
type Scenario struct {
	Name     string   `json:"name"`
	Title    string   `json:"title"`
	About    string   `json:"about"`
	Commands []string `json:"commands"`
	Metrics  []string `json:"metrics"` // keys, in the order of the columns
	Rows     []Row    `json:"rows"`
}

// Row is a peer's rounds in a scenario.
type Row struct {
	Peer   string   `json:"peer"`
	Rounds []Sample `json:"rounds"`
	Failed string   `json:"failed,omitempty"`
	Series *Series  `json:"series,omitempty"` // what the scenario watches over time, of the last round
}

// Series is a quantity at regular intervals.
type Series struct {
	Name   string    `json:"name"`
	Every  float64   `json:"every_s"`
	Values []float64 `json:"values"`
}

// Sample is one round: a value for every metric key.
type Sample map[string]float64

// Benchmark is a Go benchmark's repetitions.
type Benchmark struct {
	Package string               `json:"package"`
	Name    string               `json:"name"`
	Values  map[string][]float64 `json:"values"` // by unit, such as "ns/op"
}

// Values are a metric's rounds, in order.
func (r Row) Values(key string) []float64 {
	var values []float64
	for _, round := range r.Rounds {
		if v, measured := round[key]; measured {
			values = append(values, v)
		}
	}
	return values
}

// Disturbed says in words what other programs took, if it is more than a system's usual housekeeping.
func (r *Run) Disturbed() string {
	const housekeeping = 0.03
	if r.Others <= housekeeping {
		return ""
	}
	return fmt.Sprintf("Other programs took at least %.0f %% of the cores' time meanwhile: the figures are worse than on a quiet machine.", 100*r.Others)
}

// Scenario returns nil if the run has none of this name.
func (r *Run) Scenario(name string) *Scenario {
	for i := range r.Scenarios {
		if r.Scenarios[i].Name == name {
			return &r.Scenarios[i]
		}
	}
	return nil
}

// Row returns nil if the peer has none.
func (s *Scenario) Row(peer string) *Row {
	for i := range s.Rows {
		if s.Rows[i].Peer == peer {
			return &s.Rows[i]
		}
	}
	return nil
}

// Benchmark returns nil if the run has none of this name.
func (r *Run) Benchmark(name string) *Benchmark {
	for i := range r.Benchmarks {
		if r.Benchmarks[i].Name == name {
			return &r.Benchmarks[i]
		}
	}
	return nil
}

// FileName sorts by time.
func (r *Run) FileName() string {
	commit := r.Commit[:min(len(r.Commit), 10)]
	if commit == "" {
		commit = "nocommit"
	}
	return r.Started.UTC().Format("2006-01-02T150405Z") + "-" + commit + ".json"
}

// Write puts the run into folder and returns the file's path.
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

// Read reads one file.
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

// Newest is the path of the latest run in folder that measured as many scenarios as any there: a run of two
// scenarios is no successor of one of them all.
func Newest(folder string) (string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return "", err
	}
	slices.Sort(files) // by time
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
