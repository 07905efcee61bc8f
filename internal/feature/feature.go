// Package feature has the lists of features of an app and its groups. It does not depend on the type of a feature.
package feature

import "slices"

// A Set has the features that apply to an action, from the outermost to the innermost: first the features of the app, then those
// of groups. It is immutable. nil is the empty set.
type Set[T any] struct {
	all      []T
	app      int // number of features of the app
	observed bool
}

// With returns the set with additional features inside of those of s. ofApp tells whether all features of
// the result belong to the app. observed tells whether some of the added features observe answers. It is ignored if ofApp is true,
// because Observed is only about features of groups.
func (s *Set[T]) With(added []T, ofApp, observed bool) *Set[T] {
	more := &Set[T]{slices.Concat(s.All(), added), s.Count(), observed || s.Observed()}
	if ofApp {
		more.app, more.observed = len(more.all), false
	}
	return more
}

// All returns all features.
func (s *Set[T]) All() []T {
	if s == nil {
		return nil
	}
	return s.all
}

// Count returns the number of features of the app.
func (s *Set[T]) Count() int {
	if s == nil {
		return 0
	}
	return s.app
}

// OfApp returns the features of the app.
func (s *Set[T]) OfApp() []T { return s.All()[:s.Count()] }

// OfGroups returns the features of groups.
func (s *Set[T]) OfGroups() []T { return s.All()[s.Count():] }

// Observed reports whether features of groups observe answers.
func (s *Set[T]) Observed() bool { return s != nil && s.observed }

// Fused returns the features for which wraps returns true. It combines two adjacent features if fuse returns their combination
// and true.
func (s *Set[T]) Fused(wraps func(T) bool, fuse func(outer, inner T) (T, bool)) (all []T) {
	for _, f := range s.All() {
		if !wraps(f) {
			continue
		}
		if n := len(all); n > 0 {
			if both, ok := fuse(all[n-1], f); ok {
				all[n-1] = both
				continue
			}
		}
		all = append(all, f)
	}
	return all
}
