package typed

import (
	"cmp"
	"errors"
	"net/http"
	"slices"

	"github.com/dunlinhttp/dunlin"
)

// Undeclared counts answers of an operation that are not in its document: errors that the action returned and that the
// operation does not declare.
type Undeclared struct {
	Operation string // name, or methods and pattern
	Fault     string // ID of the fault; empty if the error is not a fault
	Status    int
	Count     int
}

type undeclaredKey struct {
	op     *Operation
	fault  string
	status int
}

// UndeclaredFaults lists the undeclared answers of the app, sorted by operation. The list should be empty. Op.Test fails for
// each of them. In production, each of them is logged when it first occurs and each time its count has doubled.
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

// declares reports whether the document of the operation contains the error. An error without a status counts as a 500,
// which every operation may answer.
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

// recordError counts an error of the action that is not declared. It logs the error if the count is a power of two.
func (o *Operation) recordError(r *dunlin.Request, err error) {
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
		s.log.Error("an operation returned an undeclared error: add it with Faults",
			"operation", o.label(), "fault", fault, "status", status, "count", count, "route", r.Route())
	}
}
