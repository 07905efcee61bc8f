package dunlin

import "context"

// SetContext adds the values of ctx, such as those of a trace, to the request. Context and the
// context of Std return them afterwards. The deadline and the cancellation of ctx are ignored; use
// context.WithTimeout(r.Context(), ...) to shorten a part of the work. It panics if ctx is nil.
func (r *Request) SetContext(ctx context.Context) {
	r.alive()
	if ctx == nil {
		panic("dunlin: SetContext: nil context (called at " + callerPlace() + ")")
	}
	r.setValues(ctx)
	r.watch.context = nil
}

// revalued reports whether SetContext was called.
func (r *Request) revalued() bool { return r.watch != nil && r.watch.values != nil }

// context is Context without the check that the request is still valid.
func (r *Request) context() context.Context { return r.contextOver(r.wire.Context()) }

func (r *Request) contextOver(own context.Context) context.Context {
	if !r.revalued() {
		return own
	}
	w := r.watch
	if w.context == nil || w.context.Context != own {
		w.context = &valuedContext{own, w.values}
	}
	return w.context
}

// lasting returns the values given to SetContext. They remain valid after the request, for the log.
func (r *Request) lasting() context.Context {
	r.shared.Lock()
	defer r.shared.Unlock()
	if r.revalued() {
		return context.WithoutCancel(r.watch.values)
	}
	return context.Background()
}

// A valuedContext is the context of a request with the values of another.
type valuedContext struct {
	context.Context
	values context.Context
}

func (c *valuedContext) Value(key any) any {
	if v := c.values.Value(key); v != nil {
		return v
	}
	return c.Context.Value(key)
}
