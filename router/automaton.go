package router

// automaton is a compiled expression.
type automaton struct{}

func compileAutomaton(string) *automaton { return nil }

func (a *automaton) match(string) bool { return false }
