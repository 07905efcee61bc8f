// Package caller records where the program called the module, for messages about its registrations.
package caller

import (
	"log/slog"
	"runtime"
	"strconv"
	"strings"
)

// A Place is the place of a call. Recording a place is cheap. String looks up its file and line, which is expensive and rarely
// needed. A Place is safe for concurrent use.
type Place struct {
	pcs [16]uintptr // enough for the frames of packages that register for others
	n   int
}

// Here returns the place of its caller.
func Here() *Place {
	p := new(Place)
	p.n = runtime.Callers(2, p.pcs[:])
	return p
}

// String returns file:line of the nearest caller outside package dunlin and the packages that register routes.
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

// LogValue resolves the place only if a handler uses the record.
func (p *Place) LogValue() slog.Value { return slog.StringValue(p.String()) }
