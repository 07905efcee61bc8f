package dunlin

import "context"

// SetContext adds the values of ctx, such as those of a trace, to the request. Context and the
// context of Std return them afterwards. The deadline and the cancellation of ctx are ignored; use
// context.WithTimeout(r.Context(), ...) to limit the time of a part of the work. SetContext panics if ctx is nil.
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

// logContext returns a context with the values given to SetContext, for the log. It is never cancelled.
func (r *Request) logContext() context.Context {
	r.shared.Lock()
	defer r.shared.Unlock()
	if r.revalued() {
		return context.WithoutCancel(r.watch.values)
	}
	return context.Background()
}

// A valuedContext is the context of a request, with the values of another context added.
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

// A Key names a value of a type that middleware stores in a request for the action:
//
//	var userKey = dunlin.NewKey[*User]("user")
//
//	userKey.Set(r, user)        // in a middleware
//	user, ok := userKey.Get(r)  // in an action
//
// Two keys are different even if they have the same name. A Key is safe for concurrent use, but a request is not.
type Key[T any] struct{ name string }

// keyed is a value of a request. The key is a *Key[T] and is compared by identity.
type keyed struct{ key, value any }

// NewKey returns a new key. name is only for display.
func NewKey[T any](name string) *Key[T] { return &Key[T]{name} }

// String returns the key's name.
func (k *Key[T]) String() string { return k.name }

// Set stores the value v under k in the request and replaces an earlier value. A pointer is stored without an
// allocation; a value of another type is moved to the heap.
func (k *Key[T]) Set(r *Request, v T) {
	r.alive()
	for i := range r.values {
		if r.values[i].key == any(k) {
			r.values[i].value = v
			return
		}
	}
	r.values = append(r.values, keyed{k, v})
}

// Get returns the value of the request under k. It reports false if there is none.
func (k *Key[T]) Get(r *Request) (T, bool) {
	r.alive()
	for i := range r.values {
		if r.values[i].key == any(k) {
			// The type cannot differ: only Set of this key stores a value under it.
			v, _ := r.values[i].value.(T)
			return v, true
		}
	}
	var zero T
	return zero, false
}
