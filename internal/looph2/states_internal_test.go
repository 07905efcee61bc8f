//go:build linux

package looph2

import (
	"os"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/invariants"
)

// The tables in the package's documentation are the tables of the code: a legal event leads to the documented state, and an
// illegal one panics in builds with the race detector and changes nothing in others.
func TestStatesAreDocumented(t *testing.T) {
	for name, m := range map[string]struct {
		states, events int
		on             func(state, event uint8) uint8
	}{
		"answer": {len(answers), int(answerEvents), func(state, event uint8) uint8 {
			a := answer(state)
			a.on(answerEvent(event))
			return uint8(a)
		}},
		"request": {len(intakes), int(intakeEvents), func(state, event uint8) uint8 {
			i := intake(state)
			i.on(intakeEvent(event))
			return uint8(i)
		}},
		"action": {len(actions), int(actionEvents), func(state, event uint8) uint8 {
			a := action(state)
			a.on(actionEvent(event))
			return uint8(a)
		}},
	} {
		table := documentedTable(t, name)
		if len(table) != m.states+1 || len(table[0]) != m.events+1 {
			t.Fatalf("%s: the table in doc.go does not have %d states and %d events", name, m.states, m.events)
		}
		events := table[0][1:]
		states := map[string]int{}
		for i, row := range table[1:] {
			states[row[0]] = i
		}
		for _, row := range table[1:] {
			for event, entry := range row[1:] {
				state := states[row[0]]
				want, legal := states[entry]
				if !legal {
					want = state
				}
				got, panics := transition(m.on, uint8(state), uint8(event))
				if illegal := !legal && invariants.Enabled; panics != illegal || !illegal && int(got) != want {
					t.Errorf("%s: %s in state %s: got state %d, panics %v; documented is %q", name, events[event], row[0], got, panics, entry)
				}
			}
		}
	}
}

func transition(on func(state, event uint8) uint8, state, event uint8) (next uint8, panics bool) {
	defer func() { panics = recover() != nil }()
	return on(state, event), false
}

// documentedTable returns the words of the lines of a table in doc.go: the first has the events, each other one a state and
// its entries.
func documentedTable(t *testing.T, name string) (table [][]string) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(strings.TrimPrefix(line, "//"))
		switch {
		case len(table) == 0 && (len(words) < 4 || words[0] != name || !strings.HasPrefix(line, "//\t")):
		case !strings.HasPrefix(line, "//\t"):
			return table
		case len(table) > 0 && len(words) != len(table[0]):
			t.Fatalf("the table %s has the line %q", name, line)
		default:
			table = append(table, words)
		}
	}
	return table
}
