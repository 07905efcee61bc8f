package dunlin

// A Key names a value that middleware leaves on a request for the action to
// find, with its type:
//
//	var userKey = dunlin.NewKey[*User]("user")
//
//	userKey.Set(r, user)        // in a middleware
//	user, ok := userKey.Get(r)  // in an action
//
// Two keys are different even when they have the same name. A Key is safe for
// any number of goroutines; a request is not.
type Key[T any] struct{ name string }

// keyed is one value of a request. The key is a *Key[T], whose identity counts.
type keyed struct{ key, value any }

// NewKey returns a new key; name is for people to read.
func NewKey[T any](name string) *Key[T] { return &Key[T]{name} }

// String returns the key's name.
func (k *Key[T]) String() string { return k.name }

// Set gives the request the value v under k, in place of any it had. A pointer is stored
// without an allocation; a value of another type is moved to the heap.
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

// Get returns the value that the request has under k; false when it has none.
func (k *Key[T]) Get(r *Request) (T, bool) {
	r.alive()
	for i := range r.values {
		if r.values[i].key == any(k) {
			// The type cannot differ: only Set with this very key stores here.
			v, _ := r.values[i].value.(T)
			return v, true
		}
	}
	var zero T
	return zero, false
}
