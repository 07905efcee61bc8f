package admission

// ForgetLines makes a line due for every reason, as after LogEvery.
func (s *Shed) ForgetLines() {
	for r := range s.by {
		s.by[r].next.Store(0)
	}
}
