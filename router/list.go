package router

// Info describes a registered route for people.
type Info struct {
	Methods, Host, Version, Pattern, Name, Place string
	Prefix                                       bool
	// Constraints are those of the parameters that have one, in order: "id: int". One that could not
	// be compiled to an automaton says so: "id: [^x]+ (regexp fallback)".
	Constraints []string
}

// Routes lists the routes in the order of their registration.
func (r *Router[T]) Routes() []Info {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var list []Info
	for _, e := range r.entries {
		info := Info{
			Methods: e.Methods, Host: e.Host, Version: e.Version, Pattern: e.Pattern,
			Name: e.Name, Place: e.Place, Prefix: e.Prefix,
		}
		for _, p := range e.route.params() {
			if p.constraint != nil {
				info.Constraints = append(info.Constraints, p.name+": "+p.constraint.String())
			}
		}
		list = append(list, info)
	}
	return list
}

// params returns the parameters of host and path.
func (r *route) params() []part {
	var params []part
	for _, p := range []*pattern{r.host, r.path} {
		if p == nil {
			continue
		}
		for _, seg := range p.segments {
			for _, part := range seg.parts {
				if part.name != "" {
					params = append(params, part)
				}
			}
		}
	}
	return params
}

// String tells how the constraint is matched when that is not the usual way.
func (c *constraint) String() string {
	switch {
	case c.regexp != nil:
		return c.text + " (regexp fallback)"
	case c.custom != nil:
		return c.text + " (func)"
	}
	return c.text
}
