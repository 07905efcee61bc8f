package results_test

import (
	"errors"
	"io/fs"
	"reflect"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/bench/internal/results"
)

func TestWriteAndRead(t *testing.T) {
	folder := t.TempDir()
	if _, err := results.Newest(folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Newest of an empty folder: got %v, want ErrNotExist", err)
	}
	older := &results.Run{Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Commit: "ffffffffffffffff"}
	newer := &results.Run{
		Started: time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC),
		Commit:  "0123456789abcdef",
		Machine: results.Machine{CPU: "some", Tools: map[string]string{"wrk": "4"}},
		Scenarios: []results.Scenario{{
			Name: "json", Metrics: []string{"p50_ms"},
			Rows: []results.Row{{Peer: "chi", Rounds: []results.Sample{{"p50_ms": 1}, {"p50_ms": 3}}}},
		}},
	}
	partial := &results.Run{Started: newer.Started.Add(time.Hour), Commit: "89abcdef"}
	for _, run := range []*results.Run{newer, partial, older} {
		if _, err := run.Write(folder); err != nil {
			t.Fatal(err)
		}
	}
	path, err := results.Newest(folder)
	if err != nil {
		t.Fatal(err)
	}
	got, err := results.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, newer) {
		t.Errorf("got\n%+v, want\n%+v", got, newer)
	}
	if values := got.Scenario("json").Row("chi").Values("p50_ms"); !reflect.DeepEqual(values, []float64{1, 3}) {
		t.Errorf("got values %v, want 1 and 3", values)
	}
	if got.Scenario("none") != nil || got.Scenario("json").Row("none") != nil || got.Benchmark("none") != nil {
		t.Error("got a row that does not exist")
	}
}

func TestFormat(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 9: "9", 0.0421: "0.042", 0.5: "0.500", 6.1: "6.10", 9.999: "10.0", 13.04: "13.0", 99.96: "100",
		401: "401", 72700: "72,700", 1234567: "1,234,567", -2.5: "-2.50",
	} {
		if got := results.Format(v); got != want {
			t.Errorf("Format(%v): got %s, want %s", v, got, want)
		}
	}
}

func TestEveryMetricIsListedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, metric := range results.All {
		if seen[metric.Key] {
			t.Errorf("%s is listed twice", metric.Key)
		}
		seen[metric.Key] = true
		if found, ok := results.MetricByKey(metric.Key); !ok || found != metric {
			t.Errorf("MetricByKey(%s): got %+v", metric.Key, found)
		}
	}
}

func TestAddReplacesAndAppendsScenarios(t *testing.T) {
	run := &results.Run{Scenarios: []results.Scenario{{Name: "a", Title: "A"}, {Name: "b", Title: "B"}}, Peers: []results.Peer{{Name: "p"}}}
	run.Add(&results.Run{
		Commit: "later", Peers: []results.Peer{{Name: "p"}, {Name: "q"}},
		Scenarios: []results.Scenario{{Name: "b", Title: "B anew"}, {Name: "c", Title: "C"}},
	})
	if len(run.Scenarios) != 3 || run.Scenario("b").Title != "B anew" || run.Scenario("c") == nil || len(run.Peers) != 2 {
		t.Errorf("got %+v", run)
	}
	if len(run.Additions) != 1 || run.Additions[0].Commit != "later" || run.Additions[0].Names() != "B anew; C" {
		t.Errorf("got additions %+v", run.Additions)
	}
}
