//go:build linux

package engine

import "time"

// AdvanceClock moves the engine's clock forward and has every loop look at it.
func (e *Engine) AdvanceClock(by time.Duration) {
	e.skew.Add(int64(by))
	e.broadcast(message{kind: msgResume})
}

// Busy reports how many goroutines the pool has, idle ones included.
func (e *Engine) PoolSize() int {
	e.workers.mu.Lock()
	defer e.workers.mu.Unlock()
	return e.workers.all
}
