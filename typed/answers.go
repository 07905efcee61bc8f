package typed

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Answers returns the answers of the operation in ascending order of their statuses. They are the
// answers of the output type, of declared faults, of middleware, and of Dunlin itself. Refusals
// before a route is found are not included: those of malformed or too long request heads, and of
// methods without a route.
func (o *Operation) Answers() []Answer {
	c := contract{byStatus: map[int]*Answer{}}
	for _, a := range o.result.answers {
		if a.MediaType == mediaJSON {
			a.Formats = o.formatNames()
		}
		c.add(a)
	}
	for _, a := range slices.Concat(o.returns, o.extra) {
		c.add(a)
	}
	for _, f := range o.allFaults() {
		c.fault(f)
	}
	o.derive(&c)
	return c.sorted()
}

// answerStatuses returns the set of the statuses in Answers.
func (o *Operation) answerStatuses() map[int]bool {
	set := map[int]bool{}
	for _, a := range o.Answers() {
		set[a.Status] = true
	}
	return set
}

// contract collects the answers of an operation by status.
type contract struct{ byStatus map[int]*Answer }

func (c *contract) add(a Answer) {
	have := c.byStatus[a.Status]
	if have == nil {
		a.Faults = slices.Clone(a.Faults)
		c.byStatus[a.Status] = &a
		return
	}
	have.Other = have.Other || a.Other
	have.Invalid = have.Invalid || a.Invalid
	if a.Description != "" && have.Description != "" {
		have.Description += "; " + a.Description
	} else {
		have.Description += a.Description
	}
}

// fault adds a fault to the answer that has the fault's status.
func (c *contract) fault(f *Fault) {
	have := c.byStatus[f.Status()]
	if have == nil {
		have = &Answer{Status: f.Status(), Problem: true}
		c.byStatus[f.Status()] = have
	}
	if !slices.Contains(have.Faults, f) {
		have.Faults = append(have.Faults, f)
	}
}

// problem adds a problem that Dunlin answers with itself.
func (c *contract) problem(status int, description string) {
	c.add(Answer{Status: status, Description: description, Problem: true, Other: true})
}

// invalidFile adds the answer to a file that violates a rule for its size or its type.
func (c *contract) invalidFile(status int, description string) {
	c.add(Answer{Status: status, Description: description, Problem: true, Other: true, Invalid: true})
}

func (c *contract) sorted() []Answer {
	list := make([]Answer, 0, len(c.byStatus))
	for _, a := range c.byStatus {
		slices.SortFunc(a.Faults, func(x, y *Fault) int { return cmp.Compare(x.ID(), y.ID()) })
		list = append(list, *a)
	}
	slices.SortFunc(list, func(a, b Answer) int { return cmp.Compare(a.Status, b.Status) })
	return list
}

// derive adds the answers that follow from the input type, the route, and the settings of the
// route.
func (o *Operation) derive(c *contract) {
	info := o.route.Info()
	p := o.plan
	if p.hasInput() {
		c.add(Answer{Status: o.state.config.InvalidStatus, Description: "The request is invalid", Problem: true, Other: true, Invalid: true})
	}
	if len(info.Params) > 0 || p.body != nil || p.form != nil {
		c.problem(http.StatusBadRequest, "The request is malformed")
	}
	if len(info.Params) > 0 {
		c.problem(http.StatusNotFound, "No route matches the path")
	}
	if p.body != nil || p.form != nil {
		c.problem(http.StatusRequestTimeout, "The body arrived too slowly")
		c.problem(http.StatusRequestEntityTooLarge, "The body is too large")
		if p.body == nil || !p.body.raw || p.body.media != "" {
			c.problem(http.StatusUnsupportedMediaType, "The media type of the body is not supported")
		}
	}
	if p.form != nil {
		for _, f := range p.form.fields {
			if f.File && f.one().Rules.MaxLength.Set {
				c.invalidFile(http.StatusRequestEntityTooLarge, f.Name+" has more than "+strconv.Itoa(f.one().Rules.MaxLength.N)+" bytes")
			}
			if f.types != nil {
				c.invalidFile(http.StatusUnsupportedMediaType, f.Name+" is not of the type "+strings.Join(f.types, " or "))
			}
		}
	}
	if len(o.security) > 0 {
		c.problem(http.StatusUnauthorized, "Credentials are missing or invalid")
		if slices.ContainsFunc(o.security, Requirement.scoped) {
			c.problem(http.StatusForbidden, "The credentials are not sufficient")
		}
	}
	if o.formats != nil {
		c.problem(http.StatusNotAcceptable, "The request accepts none of the formats")
	}
	if info.Version != "" {
		c.problem(http.StatusNotAcceptable, "The requested version does not exist")
	}
	if info.LimitedBy {
		c.problem(http.StatusTooManyRequests, "Too many concurrent requests of this client")
	}
	c.problem(http.StatusInternalServerError, "Internal error")
	why := "The server is overloaded"
	if info.Limited {
		why += ", there are too many concurrent requests"
	}
	if info.Timeout > time.Duration(0) {
		why += ", or the request took longer than " + info.Timeout.String()
	}
	c.problem(http.StatusServiceUnavailable, why)
}

// allFaults lists the faults that the output, the operation and its middleware declare.
func (o *Operation) allFaults() []*Fault { return slices.Concat(o.result.faults, o.faults, o.declared) }
