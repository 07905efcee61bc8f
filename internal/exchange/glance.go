package exchange

import "time"

// Inside is what package dunlin has for package middleware beside what it exports: methods that say nothing to users. It is
// set before packages begin that import dunlin.
var Inside any

// began is when the process did, on the monotonic clock.
var began = time.Now()

// Began returns the time from which Nanos counts.
func Began() time.Time { return began }

// Nanos returns a time in nanoseconds since the process began.
func Nanos(t time.Time) int64 { return int64(t.Sub(began)) }

// GlanceAt is Wire.Glance by the other methods of w, which leaves the client to Remote.
func GlanceAt(w Wire, name string) (named bool, origin string, ip, now int64) {
	return name != "" && w.List(name) != "", w.List("Origin"), -1, 0
}
