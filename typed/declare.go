package typed

import (
	"fmt"
	"runtime"
	"strings"
	"sync"

	"github.com/dunlinhttp/dunlin"
)

// A Declaration is a part of the contract that middleware adds to the operations that it wraps: a
// *Fault, a Requirement or a Status.
type Declaration interface{ declare(*Operation) }

func (f *Fault) declare(o *Operation)      { o.declared = append(o.declared, f.kind()) }
func (q Requirement) declare(o *Operation) { o.security = append(o.security, q) }

// A Status is an answer that middleware itself gives, such as 304.
type Status struct {
	Code        int
	Description string
}

func (s Status) declare(o *Operation) {
	o.extra = append(o.extra, Answer{Status: s.Code, Description: s.Description, Problem: s.Code >= 400, Other: true})
}

// Declares returns the middleware with declarations of its own answers. They become part of the
// contract of every typed operation that the middleware is applied to:
//
//	api := app.Group("/api", typed.Declares(authenticate, typed.Requires(bearer), typed.Unauthorized))
//
// Op.Test fails if middleware gives an answer that the operation does not declare.
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

// registrations tells middleware the operation to which it is being applied. Middleware is a function of an action and has no
// other argument. It is applied on the goroutine that registers. Therefore only one goroutine at a time registers operations,
// and code that finds the registration on its own stack belongs to it.
type registrations struct {
	sync.Mutex
	stack []*Operation // more than one if middleware registers operations itself
}

var registering registrations

// while runs f, which registers o, and makes calls from other goroutines wait.
func (s *registrations) while(o *Operation, f func()) {
	if !s.inside() {
		s.Lock()
		defer s.Unlock()
	}
	s.stack = append(s.stack, o)
	defer func() { s.stack = s.stack[:len(s.stack)-1] }()
	f()
}

// current returns the operation that the calling goroutine registers, or nil for none.
func (s *registrations) current() *Operation {
	if !s.inside() {
		return nil
	}
	return s.stack[len(s.stack)-1]
}

// inside reports whether the calling goroutine is within a call of while, not counting the caller of inside.
func (s *registrations) inside() bool {
	var pcs [64]uintptr
	for skip := 3; ; skip += len(pcs) { // without Callers, inside and its caller
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
