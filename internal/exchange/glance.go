package exchange

import (
	"math/bits"
	"strings"
	"time"
)

// Module is the type of an argument of dunlin.Internal. It proves that the caller belongs to this module, because only packages
// of this module can name the type.
type Module struct{}

// began is the start time of the process, with a monotonic clock reading.
var began = time.Now()

// Began returns the time from which Nanos counts.
func Began() time.Time { return began }

// Nanos returns a time in nanoseconds since the start of the process.
func Nanos(t time.Time) int64 { return int64(t.Sub(began)) }

// GlanceAt implements Wire.Glance with the other methods of w. It does not return the client's address.
func GlanceAt(w Wire, name string) (named bool, origin string, ip, now int64) {
	return name != "" && w.List(name) != "", w.List("Origin"), -1, 0
}

// Names is an immutable set of up to 64 field names that are looked up together.
type Names struct {
	all    []string
	firsts uint32            // first letters of the names, without regard to case
	sized  [longestOf]uint64 // sets of names, by length

	// NamesFields is the bit of Connection, for which Set returns 0: wires know without comparing names whether the request has a
	// Connection field that names other fields.
	NamesFields uint64
}

const longestOf = 40 // bytes; all names are shorter

// NewNames returns the set of names.
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

// Set returns the bit of a name, without regard to case. The bits are in the order of the arguments of NewNames. For Connection
// and for unknown names the result is 0.
func (s *Names) Set(name string) uint64 {
	if name == "" || len(name) >= longestOf || s.firsts>>(name[0]&31)&1 == 0 {
		return 0 // the common case
	}
	for set := s.sized[len(name)]; set != 0; set &= set - 1 {
		if i := bits.TrailingZeros64(set); strings.EqualFold(s.all[i], name) {
			return 1 << i
		}
	}
	return 0
}
