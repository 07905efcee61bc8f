package health

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// The states of a check.
const (
	statusOK      = "ok"
	statusFailing = "failing"
	statusTimeout = "timeout"
	statusUnknown = "unknown"
)

var (
	errHangs = errors.New("the check has not returned")
	errExit  = errors.New("the check has ended its goroutine")
)

// A check calls its function in at most one goroutine at a time, for any number of requests.
type check struct {
	Check
	log *slog.Logger

	mu       sync.Mutex
	running  bool          // the function has not returned
	returned chan struct{} // closed when the latest call has returned
	began    time.Time     // start of the latest call
	known    bool          // there is a result
	err      error         // the latest result
	at       time.Time     // start of its call
}

// begin calls the function in a goroutine, unless it runs or the latest result is still cached.
func (k *check) begin() {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	if k.running || k.known && now.Sub(k.at) < k.Cache {
		return
	}
	k.running, k.began, k.returned = true, now, make(chan struct{})
	go k.call()
}

// call calls the function. It turns a panic into an error.
func (k *check) call() {
	ctx, cancel := context.WithTimeout(context.Background(), k.Timeout)
	defer cancel()
	err := errExit // unless Run returns or panics
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		k.running = false
		k.settle(err)
		close(k.returned)
	}()
	err = k.Run(ctx)
}

// settle stores the result of the latest call, and logs a change of the state. k.mu is held.
func (k *check) settle(err error) {
	switch failed := k.known && k.err != nil; {
	case err != nil && !failed:
		k.log.Error("health check fails", "check", k.Name, "error", err.Error())
	case err == nil && failed:
		k.log.Info("health check succeeds again", "check", k.Name)
	}
	k.known, k.err, k.at = true, err, k.began
}

// await returns the result of the latest call. It waits for the function until its timeout, or until ctx ends.
func (k *check) await(ctx context.Context) CheckReport {
	k.mu.Lock()
	running, returned, left := k.running, k.returned, k.Timeout-time.Since(k.began)
	k.mu.Unlock()
	if running {
		timer := time.NewTimer(left)
		defer timer.Stop()
		select {
		case <-returned:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return k.report()
}

// report returns the latest result. A function over its timeout has failed.
func (k *check) report() CheckReport {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.running && time.Since(k.began) >= k.Timeout {
		k.settle(fmt.Errorf("%w within %v", errHangs, k.Timeout))
	}
	r := CheckReport{Name: k.Name, Status: statusOK}
	if !k.known {
		r.Status = statusUnknown
		return r
	}
	r.Age = time.Since(k.at)
	if k.err != nil {
		r.Status, r.Error = statusFailing, k.err.Error()
	}
	if errors.Is(k.err, errHangs) || errors.Is(k.err, context.DeadlineExceeded) {
		r.Status = statusTimeout
	}
	return r
}
