package typed

import (
	"fmt"
	"runtime"
	"strings"
	"sync"

	"github.com/dunlinhttp/dunlin"
)

// A Declaration is something that middleware adds to the operations behind it: a
// *Fault, a Requirement or a Status.
type Declaration interface{ declare(*Operation) }

func (f *Fault) declare(o *Operation)      { o.declared = append(o.declared, f.kind()) }
func (q Requirement) declare(o *Operation) { o.security = append(o.security, q) }

// A Status is an answer that middleware gives by itself, such as 304.
type Status struct {
	Code        int
	Description string
}

func (s Status) declare(o *Operation) {
	o.extra = append(o.extra, Answer{Status: s.Code, Description: s.Description, Problem: s.Code >= 400, Other: true})
}

// Declares returns the middleware with what it answers by itself. All typed operations
// that it is applied to have that in their contract:
//
//	api := app.Group("/api", typed.Declares(authenticate, typed.Requires(bearer), typed.Unauthorized))
//
// Middleware without it whose answers an operation does not have is found by Op.Test.
func Declares(m dunlin.Middleware, what ...Declaration) dunlin.Middleware {
	if m == nil {
		panic("typed: Declares: the middleware is nil")
	}
	for i, d := range what {
		if d == nil {
			panic(fmt.Sprintf("typed: Declares: declaration %d is nil", i))
		}
	}
	return func(next dunlin.Action) dunlin.Action {
		if o := registering.current(); o != nil {
			for _, d := range what {
				d.declare(o)
			}
		}
		return m(next)
	}
}

// registrations tells middleware for which operation it is being applied. Middleware is
// a function of an action and nothing else, and it is applied on the goroutine that
// registers; so one goroutine at a time registers operations, and whoever finds the
// registration on its own stack is part of it.
type registrations struct {
	sync.Mutex
	stack []*Operation // more than one when middleware registers operations itself
}

var registering registrations

// while runs f, which registers o.
func (s *registrations) while(o *Operation, f func()) {
	if !s.inside() {
		s.Lock()
		defer s.Unlock()
	}
	s.stack = append(s.stack, o)
	defer func() { s.stack = s.stack[:len(s.stack)-1] }()
	f()
}

// current returns the operation that the calling goroutine registers, nil for none.
func (s *registrations) current() *Operation {
	if !s.inside() {
		return nil
	}
	return s.stack[len(s.stack)-1]
}

// inside reports whether the calling goroutine is within while.
func (s *registrations) inside() bool {
	var pcs [64]uintptr
	for skip := 1; ; skip += len(pcs) {
		n := runtime.Callers(skip, pcs[:])
		frames := runtime.CallersFrames(pcs[:n])
		for n > 0 {
			f, more := frames.Next()
			if strings.HasSuffix(f.Function, "/typed.(*registrations).while") {
				return true
			}
			if !more {
				break
			}
		}
		if n < len(pcs) {
			return false
		}
	}
}
