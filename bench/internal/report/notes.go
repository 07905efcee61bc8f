package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// A Note explains why other servers are ahead of Dunlin, and how Dunlin could improve. The report prints the note below the rows
// to which it applies. It omits the note if the run has no such row.
type Note struct {
	Title     string   `json:"title"`
	Scenarios []string `json:"scenarios,omitempty"` // empty for all scenarios
	Metrics   []string `json:"metrics,omitempty"`   // keys of metrics; empty for all metrics
	Peers     []string `json:"peers,omitempty"`     // empty for all peers
	Text      string   `json:"text"`
	Benchmark bool     `json:"benchmark,omitempty"` // Scenarios are names of Go benchmarks, and Metrics are their units
}

func (n Note) explains(scenario, metric, peer string) bool {
	in := func(list []string, name string) bool { return len(list) == 0 || slices.Contains(list, name) }
	return in(n.Scenarios, scenario) && in(n.Metrics, metric) && in(n.Peers, peer)
}

// ReadNotes reads a list of notes in JSON. If the file does not exist, the list is empty.
func ReadNotes(path string) ([]Note, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read notes: %w", err)
	}
	var notes []Note
	if err := json.Unmarshal(data, &notes); err != nil {
		return nil, fmt.Errorf("read notes: %s: %w", path, err)
	}
	return notes, nil
}

// Explained is a note, and the leads that it explains.
type Explained struct {
	Note
	Leads []Lead
}

// explain assigns each server that is ahead to the first note that explains its lead. open has the servers without a note.
func explain(leads []Lead, notes []Note) (explained []Explained, open []Lead) {
	byNote := make([][]Lead, len(notes))
	for _, lead := range leads {
		var unexplained []Ahead
		servers := make([][]Ahead, len(notes))
		for _, ahead := range lead.Servers {
			i := slices.IndexFunc(notes, func(n Note) bool {
				return n.explains(lead.Scenario.Name, lead.Metric.Key, ahead.Peer)
			})
			if i < 0 {
				unexplained = append(unexplained, ahead)
			} else {
				servers[i] = append(servers[i], ahead)
			}
		}
		part := func(list *[]Lead, servers []Ahead) {
			if len(servers) > 0 {
				*list = append(*list, Lead{lead.Scenario, lead.Metric, lead.Own, servers})
			}
		}
		for i := range notes {
			part(&byNote[i], servers[i])
		}
		part(&open, unexplained)
	}
	for i, leads := range byNote {
		if len(leads) > 0 {
			explained = append(explained, Explained{notes[i], leads})
		}
	}
	return explained, open
}
