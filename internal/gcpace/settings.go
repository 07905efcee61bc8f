package gcpace

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
)

// The settings of the runtime, GOGC and the memory limit, are the process's, and the
// program's before they are ours. One that is found to be other than what was set here
// last was set by the program: it stays, and nothing is set here any more until the last
// collector has stopped.
type settings struct {
	percent, limit setting
}

type setting struct {
	ours   bool
	before int64                   // to come back in the end
	last   int64                   // what was set
	apply  func(value int64) int64 // returns what was before
}

// goPercent is the percentage of a program that has not chosen one.
const goPercent = 100

// begin notes what the program has chosen: the percentage is its own if it is in the
// environment or is not Go's; a memory limit may be made tighter.
func (s *settings) begin() {
	now := readRuntime()
	s.percent = setting{now.percent == goPercent && os.Getenv("GOGC") == "", now.percent, now.percent, setPercent}
	s.limit = setting{true, now.limit, now.limit, debug.SetMemoryLimit}
}

func setPercent(value int64) int64 { return int64(debug.SetGCPercent(int(value))) }

// look says what the settings are.
func (s *settings) look(now runtimeState) {
	s.percent.ours = s.percent.ours && now.percent == s.percent.last
	s.limit.ours = s.limit.ours && now.limit == s.limit.last
}

// set changes a setting if it is ours.
func (s *setting) set(value int64) {
	if !s.ours || value == s.last {
		return
	}
	if was := s.apply(value); was != s.last { // changed since look
		s.apply(was)
		s.ours = false
		return
	}
	s.last = value
}

// setAbout is set when that makes a difference of more than one in part. To change a setting is
// not for nothing: the runtime reckons its pace anew, with the world stopped.
func (s *setting) setAbout(value, part int64) {
	if diff := value - s.last; max(diff, -diff) > s.last/part {
		s.set(value)
	}
}

// end brings back what was before.
func (s *settings) end() {
	s.look(readRuntime())
	s.percent.set(s.percent.before)
	s.limit.set(s.limit.before)
}

// runtimeState is what the runtime says of itself.
type runtimeState struct {
	percent int64 // -1: off
	limit   int64
	live    int64 // bytes that the last collection found live
	stacks  int64
	beside  int64 // bytes of Go's that its limit counts, but for objects and free memory of the heap
	cycles  int64 // collections so far
}

func readRuntime() runtimeState {
	samples := [...]metrics.Sample{
		{Name: "/gc/gogc:percent"},
		{Name: "/gc/gomemlimit:bytes"},
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/stacks:bytes"},
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"},
	}
	metrics.Read(samples[:])
	var n [len(samples)]int64
	for i := range samples {
		if samples[i].Value.Kind() == metrics.KindUint64 {
			n[i] = int64(samples[i].Value.Uint64())
		}
	}
	return runtimeState{percent: n[0], limit: n[1], live: n[2], stacks: n[3], beside: n[4] - n[5] - n[6] - n[7], cycles: n[8]}
}
