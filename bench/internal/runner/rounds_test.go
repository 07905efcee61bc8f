//go:build linux

package runner

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/dunlinhttp/dunlin/bench/internal/peer"
	"github.com/dunlinhttp/dunlin/bench/internal/results"
	"github.com/dunlinhttp/dunlin/bench/internal/scenario"
)

// A silent Watcher records finished steps and prints nothing.
type silent struct {
	Watcher
	finished []string
	steps    [][2]int
}

func (*silent) Note(string, ...any)                     {}
func (*silent) Failed(string, string, error)            {}
func (w *silent) Finished(s results.Scenario)           { w.finished = append(w.finished, s.Name) }
func (w *silent) Step(done, all int, _ string)          { w.steps = append(w.steps, [2]int{done, all}) }
func rowOf(s results.Scenario, peer string) results.Row { return *s.Row(peer) }

func TestRoundsOfScenariosAlternate(t *testing.T) {
	var order []string
	named := func(name string, maxRounds int) scenario.Scenario {
		return scenario.Scenario{
			Name: name, MaxRounds: maxRounds,
			Commands: func(*scenario.Env) []string { return []string{"load " + name} },
			Round: func(_ context.Context, _ *scenario.Env, p peer.Built) (results.Sample, error) {
				if name == "a" && p.Name == "gin" {
					return nil, errors.New("it fails")
				}
				order = append(order, name+" "+p.Name)
				return results.Sample{"n": float64(len(order))}, nil
			},
		}
	}
	peers, err := peer.Named([]string{"dunlin", "gin"})
	if err != nil {
		t.Fatal(err)
	}
	members := []member{{Built: peer.Built{Peer: peers[0]}}, {Built: peer.Built{Peer: peers[1]}}}
	all := newMeasurements(Options{Scenarios: []scenario.Scenario{named("a", 0), named("once", 1), named("b", 2)}, Rounds: 3}, members)
	watch := &silent{}
	for round := range 3 {
		if err := all.runRound(t.Context(), &scenario.Env{}, round, watch); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"a dunlin", "once dunlin", "once gin", "b dunlin", "b gin",
		"a dunlin", "b dunlin", "b gin",
		"a dunlin",
	}
	if !reflect.DeepEqual(order, want) {
		t.Errorf("got order %q\nwant %q", order, want)
	}
	if want := []string{"once", "b", "a"}; !reflect.DeepEqual(watch.finished, want) {
		t.Errorf("got finished %q, want %q: each after its last round", watch.finished, want)
	}
	measured := all.measured()
	if got := rowOf(measured[0], "dunlin").Values("n"); !reflect.DeepEqual(got, []float64{1, 6, 9}) {
		t.Errorf("rounds of a: got %v", got)
	}
	if row := rowOf(measured[0], "gin"); row.Failed != "it fails" || len(row.Rounds) != 0 {
		t.Errorf("failed server: %+v", row)
	}
	if len(measured) != 3 || measured[2].Commands[0] != "load b" {
		t.Errorf("got measurements %+v", measured)
	}
	if last := watch.steps[len(watch.steps)-1]; last[0] > last[1] || all.done != all.all || all.all != 12 {
		t.Errorf("got last progress %v, %d of %d", last, all.done, all.all)
	}
}
