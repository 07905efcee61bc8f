package router

import "slices"

// Info describes a registered route.
type Info struct {
	Methods, Host, Version, Pattern, Name, Place string
	Prefix                                       bool
	// Constraints lists the parameters that have a constraint, in order, in the form "id: int". A constraint that was
	// not compiled to an automaton is marked: "id: [^x]+ (regexp fallback)".
	Constraints []string
	// Params lists all parameters in order. The parameters of the host come first.
	Params []Param
}

// Param describes a parameter of a route.
type Param struct {
	Name       string
	Constraint string // as registered; empty if the parameter has no constraint
	InHost     bool
	Rest       bool // the parameter is a catch-all: it matches the rest of the path, which may be empty
}

// Routes lists the routes in the order of their registration.
func (r *Router[T]) Routes() []Info {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var list []Info
	for _, e := range r.entries {
		list = append(list, e.info())
	}
	return list
}

// Takes reports whether a route names the method. Routes for any method do not count.
func (r *Router[T]) Takes(method string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	bit := r.table.methods.Load().bit(method)
	return bit != anyMethod && slices.ContainsFunc(r.entries, func(e *entry[T]) bool { return e.route.methods&bit != 0 })
}

// Info describes the route with index i in the order of registration. It panics if i is out of range.
func (r *Router[T]) Info(i int) Info {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.entries[i].info()
}

func (e *entry[T]) info() Info {
	info := Info{
		Methods: e.Methods, Host: e.Host, Version: e.Version, Pattern: e.Pattern,
		Name: e.Name, Place: e.position(), Prefix: e.Prefix,
	}
	e.route.eachParam(func(p part, in *pattern, rank rank) {
		param := Param{Name: p.name, InHost: in == e.route.host, Rest: rank == catchAll}
		if p.constraint != nil {
			param.Constraint = p.constraint.text
			info.Constraints = append(info.Constraints, p.name+": "+p.constraint.String())
		}
		info.Params = append(info.Params, param)
	})
	return info
}

// eachParam calls f for each parameter of host and path, with the parameter's pattern and the rank of its segment.
func (r *route) eachParam(f func(p part, in *pattern, rank rank)) {
	for _, p := range []*pattern{r.host, r.path} {
		if p == nil {
			continue
		}
		for _, seg := range p.segments {
			for _, part := range seg.parts {
				if part.name != "" {
					f(part, p, seg.rank)
				}
			}
		}
	}
}

// String returns the text of the constraint. A note follows if the constraint is a function or is matched by package
// regexp.
func (c *constraint) String() string {
	switch {
	case c.regexp != nil:
		return c.text + " (regexp fallback)"
	case c.custom != nil:
		return c.text + " (func)"
	}
	return c.text
}
