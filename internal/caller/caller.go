// Package caller finds out where users call the module, for messages about what they registered there.
package caller

import (
	"log/slog"
	"runtime"
	"strconv"
	"strings"
)

// A Place is where something was called. It is cheap to have, and expensive to say: names and lines take their time at
// every start, and are hardly ever asked for. It is safe for concurrent use.
type Place struct {
	pcs [16]uintptr // not so many are in packages that register for others
	n   int
}

// Here returns the place of the caller.
func Here() *Place {
	p := new(Place)
	p.n = runtime.Callers(2, p.pcs[:])
	return p
}

// String returns file:line of the nearest caller outside package dunlin and those that register routes for others.
func (p *Place) String() string {
	for frames, more := runtime.CallersFrames(p.pcs[:p.n]), true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		switch pkg, _, _ := strings.Cut(strings.TrimPrefix(f.Function, "github.com/dunlinhttp/"), "."); pkg {
		case "", "dunlin", "dunlin/typed", "dunlin/openapi":
		default:
			return f.File + ":" + strconv.Itoa(f.Line)
		}
	}
	return "unknown place"
}

// LogValue has handlers that want the record say the place.
func (p *Place) LogValue() slog.Value { return slog.StringValue(p.String()) }
