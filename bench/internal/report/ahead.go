package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dunlinhttp/dunlin/bench/internal/results"
	"github.com/dunlinhttp/dunlin/bench/internal/stats"
)

// A Lead is a metric of a scenario in which other servers are significantly better than Dunlin.
type Lead struct {
	Scenario results.Scenario
	Metric   results.Metric
	Own      float64
	Servers  []Ahead // the best server is first
}

// Ahead is a server that is better than Dunlin.
type Ahead struct {
	Peer   string
	Median float64
}

// Leads returns all leads in a run. It does not include the floor, which is not a server, and variants of Dunlin, which do not
// compete with Dunlin.
func Leads(run *results.Run) []Lead {
	var leads []Lead
	for _, s := range run.Scenarios {
		own := ownRow(&s)
		if own == nil || len(own.Rounds) == 0 {
			continue
		}
		for _, key := range s.Metrics {
			metric, known := results.MetricByKey(key)
			if !known || !metric.Judged {
				continue
			}
			if lead := leadIn(s, metric, own); len(lead.Servers) > 0 {
				leads = append(leads, lead)
			}
		}
	}
	return append(leads, benchmarkLeads(run.Benchmarks)...)
}

// ownRow returns the row of Dunlin with default settings, or of the variant that takes its place in a scenario.
func ownRow(s *results.Scenario) *results.Row {
	for _, name := range []string{"dunlin-h2", "dunlin-h2c", "dunlin-bulk-tls", "dunlin-tls", "dunlin-db"} {
		if row := s.Row(name); row != nil {
			return row
		}
	}
	return s.Row("dunlin")
}

// judgedUnits has the units in which other implementations can be better: time, and memory that the garbage collector must
// collect.
var judgedUnits = []string{"ns/op", "B/op", "allocs/op"}

// benchmarkLeads returns the leads of the Go benchmarks. The name of a benchmark ends with the implementation that is
// compared, as in "Users/sonic" or "GitHub/router=gin".
func benchmarkLeads(all []results.Benchmark) []Lead {
	var leads []Lead
	for _, own := range all {
		group, ours := strings.CutSuffix(own.Name, "dunlin")
		if !ours {
			continue
		}
		name, _, _ := strings.Cut(group, "/")
		for _, unit := range judgedUnits {
			mine := stats.Summarise(own.Values[unit]).Median
			lead := Lead{Scenario: results.Scenario{Name: name, Title: "Go benchmark " + name}, Metric: results.Metric{Key: unit, Label: unit}, Own: mine}
			for _, b := range all {
				other, same := strings.CutPrefix(b.Name, group)
				median := stats.Summarise(b.Values[unit]).Median
				if same && mine-median > minLead*mine && stats.Compare(own.Values[unit], b.Values[unit]).Significant {
					lead.Servers = append(lead.Servers, Ahead{other, median})
				}
			}
			slices.SortFunc(lead.Servers, func(a, b Ahead) int { return cmp.Compare(a.Median, b.Median) })
			if len(lead.Servers) > 0 {
				leads = append(leads, lead)
			}
		}
	}
	return leads
}

// minLead is the minimum share by which a figure must differ to matter to a reader. If there is only one round, this is the
// only condition.
const minLead = 0.02

func leadIn(s results.Scenario, metric results.Metric, row *results.Row) Lead {
	own := row.Values(metric.Key)
	lead := Lead{Scenario: s, Metric: metric, Own: stats.Summarise(own).Median}
	for _, b := range bars(s, metric) {
		if isOwn(b.name) || b.name == "floor" || suffixOf(b.name) != suffixOf(row.Peer) {
			continue
		}
		gap := lead.Own - b.Median
		if metric.Higher {
			gap = -gap
		}
		if gap > minLead*lead.Own && stats.Compare(own, s.Row(b.name).Values(metric.Key)).Significant {
			lead.Servers = append(lead.Servers, Ahead{b.name, b.Median})
		}
	}
	return lead
}

// String returns the lead as a line of the report.
func (l Lead) String() string {
	servers := make([]string, len(l.Servers))
	for i, ahead := range l.Servers {
		servers[i] = fmt.Sprintf("%s (%s", ahead.Peer, results.Format(ahead.Median))
		if l.Own != 0 {
			servers[i] += fmt.Sprintf(", %s×", results.Format(ahead.Median/l.Own))
		}
		servers[i] += ")"
	}
	return fmt.Sprintf("%s, %s: Dunlin %s; ahead: %s", l.Scenario.Title, l.Metric.Label, results.Format(l.Own),
		strings.Join(servers, ", "))
}
