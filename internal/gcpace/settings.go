package gcpace

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
)

// GOGC and the memory limit are settings of the process, and values set by the program have precedence. If a value differs from
// the last one that this package has set, the program has set it. This package does not change such a setting until the last
// collector has stopped.
type settings struct {
	percent, limit setting
}

type setting struct {
	ours   bool                    // this package may change the setting
	before int64                   // restored at the end
	last   int64                   // the value last set
	apply  func(value int64) int64 // returns the previous value
}

// goPercent is Go's default of GOGC.
const goPercent = 100

// begin records the program's settings. The percentage belongs to the program if it is in the environment or is not
// Go's default. A memory limit may be lowered.
func (s *settings) begin() {
	now := readRuntime()
	s.percent = setting{now.percent == goPercent && os.Getenv("GOGC") == "", now.percent, now.percent, setPercent}
	s.limit = setting{true, now.limit, now.limit, debug.SetMemoryLimit}
}

func setPercent(value int64) int64 { return int64(debug.SetGCPercent(int(value))) }

// detectChanges compares the current settings with the values last set, and records those that the program has changed.
func (s *settings) detectChanges(now runtimeState) {
	s.percent.ours = s.percent.ours && now.percent == s.percent.last
	s.limit.ours = s.limit.ours && now.limit == s.limit.last
}

// set changes a setting unless it belongs to the program.
func (s *setting) set(value int64) {
	if !s.ours || value == s.last {
		return
	}
	if was := s.apply(value); was != s.last { // changed by the program since detectChanges
		s.apply(was)
		s.ours = false
		return
	}
	s.last = value
}

// setAbout calls set if the value changes by more than one part in part. It avoids small changes, because for each change the
// runtime stops the world.
func (s *setting) setAbout(value, part int64) {
	if diff := value - s.last; max(diff, -diff) > s.last/part {
		s.set(value)
	}
}

// end restores the program's settings.
func (s *settings) end() {
	s.detectChanges(readRuntime())
	s.percent.set(s.percent.before)
	s.limit.set(s.limit.before)
}

// runtimeState is a snapshot of runtime metrics.
type runtimeState struct {
	percent int64 // -1 if off
	limit   int64
	live    int64 // live bytes after the last collection
	stacks  int64
	beside  int64 // bytes that count against the memory limit, without heap objects and free heap memory
	cycles  int64 // number of collections
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
