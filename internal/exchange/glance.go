package exchange

import (
	"math/bits"
	"strings"
	"time"
)

// Inside is what package dunlin offers to package middleware and module otel beside its public API. It is set
// by dunlin's init, before that of any package that imports it.
var Inside any

// began is when the process began, on the monotonic clock.
var began = time.Now()

// Began returns the time from which Nanos counts.
func Began() time.Time { return began }

// Nanos returns a time in nanoseconds since the process began.
func Nanos(t time.Time) int64 { return int64(t.Sub(began)) }

// GlanceAt is Wire.Glance by the other methods of w, which leaves the client to Remote.
func GlanceAt(w Wire, name string) (named bool, origin string, ip, now int64) {
	return name != "" && w.List(name) != "", w.List("Origin"), -1, 0
}

// Names are names of fields to look for together, 64 at most. They do not change.
type Names struct {
	all    []string
	firsts uint32            // letters that they begin with, whatever the case
	sized  [longestOf]uint64 // by length, sets of them

	// NamesFields is the set of Connection, which the others do not hold: wires know without a look at the
	// name whether it is there and names fields.
	NamesFields uint64
}

const longestOf = 40 // bytes that none is as long as

// NewNames returns names.
func NewNames(all ...string) *Names {
	s := &Names{all: all}
	for i, name := range all {
		if name == "Connection" {
			s.NamesFields = 1 << i
			continue
		}
		s.firsts |= 1 << (name[0] & 31)
		s.sized[len(name)] |= 1 << i
	}
	return s
}

// Set returns the set of a name, whatever its case: a bit, in the order of all, and none for Connection and for a name that is
// not among them.
func (s *Names) Set(name string) uint64 {
	if name == "" || len(name) >= longestOf || s.firsts>>(name[0]&31)&1 == 0 {
		return 0 // as most are
	}
	for set := s.sized[len(name)]; set != 0; set &= set - 1 {
		if i := bits.TrailingZeros64(set); strings.EqualFold(s.all[i], name) {
			return 1 << i
		}
	}
	return 0
}
