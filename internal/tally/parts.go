package tally

import (
	"fmt"
	"sync"
)

// Parts are named statistics of other components. The zero value is empty. All methods are safe for concurrent use.
type Parts struct {
	mu    sync.Mutex
	funcs map[string]func() any
}

// Add adds the statistics returned by f, and reports whether the name is new.
func (p *Parts) Add(name string, f func() any) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.funcs[name]; known || f == nil {
		return false
	}
	if p.funcs == nil {
		p.funcs = map[string]func() any{}
	}
	p.funcs[name] = f
	return true
}

// Read calls all functions and returns their results, or nil if there are none.
func (p *Parts) Read() map[string]any {
	p.mu.Lock()
	funcs := make(map[string]func() any, len(p.funcs))
	for name, f := range p.funcs {
		funcs[name] = f
	}
	p.mu.Unlock()
	if len(funcs) == 0 {
		return nil
	}
	values := make(map[string]any, len(funcs))
	for name, f := range funcs {
		values[name] = read(f)
	}
	return values
}

// read returns the result of f, or a text about its panic, so that a component cannot end the process.
func read(f func() any) (value any) {
	defer func() {
		if v := recover(); v != nil {
			value = fmt.Sprint("panic: ", v)
		}
	}()
	return f()
}
