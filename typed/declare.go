package typed

import (
	"fmt"
	"runtime"
	"strings"
	"sync"

	"github.com/dunlinhttp/dunlin"
)

// A Declaration is a part of the contract of an operation that middleware adds: a *Fault, a Requirement or a Status.
type Declaration interface{ declare(*Operation) }

func (f *Fault) declare(o *Operation)      { o.declared = append(o.declared, f.kind()) }
func (q Requirement) declare(o *Operation) { o.security = append(o.security, q) }

// A Status declares an answer that middleware gives itself, such as 304.
type Status struct {
	Code        int
	Description string
}

func (s Status) declare(o *Operation) {
	o.extra = append(o.extra, Answer{Status: s.Code, Description: s.Description, Problem: s.Code >= 400, Other: true})
}

// Declares returns the middleware m with declarations of the answers that m gives. They become part of the contract of every
// typed operation to which the middleware is applied:
//
//	api := app.Group("/api", typed.Declares(authenticate, typed.Requires(bearer), typed.Unauthorized))
//
// Op.Test fails if middleware gives an answer that is not declared.
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

// registrations tells middleware to which operation it is being applied. This needs a trick, because a middleware has no
// argument but the action. Middleware is applied on the goroutine that registers the operation. Only one goroutine at a time
// registers operations, so code that finds the method while on its own stack belongs to the current registration.
type registrations struct {
	sync.Mutex
	stack []*Operation // has several operations if middleware registers operations itself
}

var registering registrations

// while calls f, which registers o. Calls from other goroutines wait.
func (s *registrations) while(o *Operation, f func()) {
	if !s.inside() {
		s.Lock()
		defer s.Unlock()
	}
	s.stack = append(s.stack, o)
	defer func() { s.stack = s.stack[:len(s.stack)-1] }()
	f()
}

// current returns the operation that the calling goroutine is registering, or nil.
func (s *registrations) current() *Operation {
	if !s.inside() {
		return nil
	}
	return s.stack[len(s.stack)-1]
}

// inside reports whether the method while is on the stack of the calling goroutine. The direct caller of inside does not
// count.
func (s *registrations) inside() bool {
	var pcs [64]uintptr
	for skip := 3; ; skip += len(pcs) { // skips runtime.Callers, inside and the caller of inside
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
