package typed

import (
	"cmp"
	"errors"
	"net/http"
	"slices"

	"github.com/dunlinhttp/dunlin"
)

// Undeclared counts the answers of an operation that its document does not have: an
// error that the action returned and the operation has not declared.
type Undeclared struct {
	Operation string // its name, or its method and pattern
	Fault     string // its name, "" for a plain problem
	Status    int
	Count     int
}

type undeclaredKey struct {
	op     *Operation
	fault  string
	status int
}

// UndeclaredFaults lists what the app has answered but not declared, in the order of
// the operations' names. It should be empty: Op.Test fails for each, and in production each
// is logged when it is first seen and at every doubling.
func UndeclaredFaults(app *dunlin.App) []Undeclared {
	s := stateOf(app)
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Undeclared, 0, len(s.undeclared))
	for _, u := range s.undeclared {
		list = append(list, *u)
	}
	slices.SortFunc(list, func(a, b Undeclared) int {
		return cmp.Or(cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.Status, b.Status), cmp.Compare(a.Fault, b.Fault))
	})
	return list
}

// declares reports whether the error is one that the document has. What has no status
// of its own is a 500, which every operation may answer.
func (o *Operation) declares(err error) (fault string, status int, ok bool) {
	if f := faultOf(err); f != nil {
		return f.ID(), f.Status(), slices.Contains(o.allFaults(), f.kind())
	}
	coder, isCoder := errors.AsType[interface {
		error
		StatusCode() int
	}](err)
	if !isCoder {
		return "", http.StatusInternalServerError, true
	}
	status = coder.StatusCode()
	return "", status, o.statuses()[status]
}

// noteError looks whether an error of the action is declared.
func (o *Operation) noteError(r *dunlin.Request, err error) {
	fault, status, ok := o.declares(err)
	if ok {
		return
	}
	s := o.state
	key := undeclaredKey{o, fault, status}
	s.mu.Lock()
	u := s.undeclared[key]
	if u == nil {
		u = &Undeclared{Operation: o.label(), Fault: fault, Status: status}
		s.undeclared[key] = u
	}
	u.Count++
	count := u.Count
	s.mu.Unlock()
	if count&(count-1) == 0 {
		s.log.Error("an operation answered with an error that it has not declared: add it with Faults",
			"operation", o.label(), "fault", fault, "status", status, "count", count, "route", r.Route())
	}
}
