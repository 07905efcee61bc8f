package report

import (
	"fmt"
	"strings"

	"github.com/dunlinhttp/dunlin/bench/internal/results"
	"github.com/dunlinhttp/dunlin/bench/internal/stats"
)

// Lead is a scenario's metric in which other servers are ahead of Dunlin, by more than the spread.
type Lead struct {
	Scenario results.Scenario
	Metric   results.Metric
	Own      float64
	Servers  []string // "name (figure, ratio)", the best first
}

// Leads finds them. The floor is no server, and Dunlin's own variants do not compete with it.
func Leads(run *results.Run) []Lead {
	var leads []Lead
	for _, s := range run.Scenarios {
		own := s.Row("dunlin")
		if own == nil || len(own.Rounds) == 0 {
			continue
		}
		for _, key := range s.Metrics {
			metric, known := results.MetricByKey(key)
			if !known || !metric.Judged {
				continue
			}
			if lead := leadIn(s, metric, own.Values(key)); len(lead.Servers) > 0 {
				leads = append(leads, lead)
			}
		}
	}
	return leads
}

func leadIn(s results.Scenario, metric results.Metric, own []float64) Lead {
	lead := Lead{Scenario: s, Metric: metric, Own: stats.Summarise(own).Median}
	for _, b := range bars(s, metric) {
		if isOwn(b.name) || b.name == "floor" {
			continue
		}
		change := stats.Compare(own, s.Row(b.name).Values(metric.Key))
		better := b.Median < lead.Own
		if metric.Higher {
			better = b.Median > lead.Own
		}
		if better && change.Beyond {
			ratio := ""
			if lead.Own != 0 {
				ratio = fmt.Sprintf(", %s×", results.Format(b.Median/lead.Own))
			}
			lead.Servers = append(lead.Servers, fmt.Sprintf("%s (%s%s)", b.name, results.Format(b.Median), ratio))
		}
	}
	return lead
}

// String is a line of the report.
func (l Lead) String() string {
	return fmt.Sprintf("%s, %s: Dunlin %s; ahead: %s", l.Scenario.Title, l.Metric.Label, results.Format(l.Own),
		strings.Join(l.Servers, ", "))
}
