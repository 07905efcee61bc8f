package memory

import (
	"testing"
	"time"
)

// The outcome of each case follows from the rules of the package comment. The bound is 8 MiB, so holders of more than Small get
// 6 MiB together, unless there is only one.
func TestTwelveCases(t *testing.T) {
	const kib, mib = int64(1 << 10), int64(1 << 20)
	// A step changes one holder, named by a letter, after a time. The expected outcome of a request is "granted", "waits" or
	// "refused".
	type step struct {
		after time.Duration
		name  string
		do    string // body, answer, read, send, works, ends
		n     int64
		want  string
	}
	for _, c := range []struct {
		rule, name string
		steps      []step
		ended      string
	}{
		{"1", "a small request is granted from a slow download", []step{
			{0, "a", "answer", 8 * mib, ""},
			{3 * time.Second, "b", "body", 64 * kib, "granted"},
		}, "a"},
		{"1", "of two slow downloads the larger one pays for a small request", []step{
			{0, "a", "answer", 5 * mib, ""},
			{0, "b", "answer", 3 * mib, ""},
			{3 * time.Second, "c", "body", 64 * kib, "granted"},
		}, "a"},
		{"1", "if nobody can be evicted, small requests exceed the bound by up to an eighth", []step{
			{0, "a", "answer", 8 * mib, ""},
			{0, "a", "works", 0, ""},
			{9 * time.Second, "b", "body", 64 * kib, "granted"},
			{0, "b", "works", 0, ""},
			{0, "c", "body", 2 * mib, "waits"},
		}, ""},
		{"2", "large requests that fit are granted, up to three quarters", []step{
			{0, "a", "body", 3 * mib, "granted"},
			{0, "b", "body", 3 * mib, "granted"},
			{0, "c", "body", 100 * kib, "waits"},
		}, ""},
		{"2", "a single holder may have all", []step{
			{0, "a", "body", 8 * mib, "granted"},
		}, ""},
		{"3", "the queue is first in, first out, whatever would fit", []step{
			{0, "a", "body", 5 * mib, "granted"},
			{0, "a", "works", 0, ""},
			{0, "b", "body", 4 * mib, "waits"},
			{0, "c", "body", 100 * kib, "waits"},
			{0, "a", "ends", 0, ""},
			{0, "c", "body", 100 * kib, "waits"},
			{0, "b", "body", 4 * mib, "granted"},
			{0, "c", "body", 100 * kib, "granted"},
		}, ""},
		{"3", "a request that waits evicts a half-sent body after a second", []step{
			{0, "a", "body", 5 * mib, "granted"},
			{900 * time.Millisecond, "b", "body", 2 * mib, "waits"},
			{200 * time.Millisecond, "b", "body", 2 * mib, "granted"},
		}, "a"},
		{"3", "it does not evict a body that arrives at a good rate", []step{
			{0, "a", "body", 5 * mib, "granted"},
			{900 * time.Millisecond, "a", "send", 3 * mib, ""},
			{600 * time.Millisecond, "b", "body", 2 * mib, "waits"},
		}, ""},
		{"3", "after ten seconds it is refused", []step{
			{0, "a", "body", 5 * mib, "granted"},
			{0, "a", "works", 0, ""},
			{0, "b", "body", 2 * mib, "waits"},
			{10 * time.Second, "b", "body", 2 * mib, "refused"},
		}, ""},
		{"3", "bodies that grow and block each other: the last one pays after a second", []step{
			{0, "a", "body", 3 * mib, "granted"},
			{0, "b", "body", 3 * mib, "granted"},
			{500 * time.Millisecond, "a", "send", 3 * mib, ""},
			{0, "b", "send", 3 * mib, ""},
			{0, "a", "body", 4 * mib, "waits"},
			{0, "b", "body", 4 * mib, "waits"},
			{1100 * time.Millisecond, "a", "body", 4 * mib, "granted"},
		}, "b"},
		{"3", "what can never fit is refused at once", []step{
			{0, "a", "body", 9 * mib, "refused"},
		}, ""},
		{"4", "an answer that is read at a good rate is cut off last", []step{
			{0, "a", "answer", 4 * mib, ""},
			{0, "b", "body", 2 * mib, "granted"},
			{900 * time.Millisecond, "a", "read", 2 * mib, ""},
			{0, "b", "send", 1 * mib, ""},
			{200 * time.Millisecond, "c", "answer", 3 * mib, ""},
		}, "b"},
	} {
		t.Run(c.rule+" "+c.name, func(t *testing.T) {
			b, now, open := cappedBudget(0, 0)
			b.SetBound(8 << 20)
			peers := make(map[string]*cappedPeer)
			for i, s := range c.steps {
				*now += int64(s.after)
				p := peers[s.name]
				if p == nil {
					p = open(here)
					peers[s.name] = p
				}
				got := ""
				switch s.do {
				case "body":
					got = map[Outcome]string{Granted: "granted", MustWait: "waits", NoRoom: "refused"}[p.reserveTo(s.n)]
				case "answer":
					p.BeginResponse(s.n)
					p.Force(Output, s.n)
				case "read", "send":
					p.Progress(s.n, 1<<20)
				case "works":
					p.SetWorking(true)
				case "ends":
					p.EndRequest()
					p.ReleaseReservation()
				}
				if got != s.want {
					t.Fatalf("step %d, %s of %s: got %s, want %s", i+1, s.do, s.name, got, s.want)
				}
			}
			ended := ""
			for _, name := range []string{"a", "b", "c"} {
				if p := peers[name]; p != nil && p.ended {
					ended += name
				}
			}
			if ended != c.ended {
				t.Errorf("%q ended, want %q", ended, c.ended)
			}
		})
	}
}
