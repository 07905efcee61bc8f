package health

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// These are the states of a check.
const (
	statusOK      = "ok"
	statusFailing = "failing"
	statusTimeout = "timeout"
	statusUnknown = "unknown"
)

// These are error texts of checks.
const (
	hangs = "the check has not returned"
	exits = "the check has ended its goroutine"
)

// A check calls Run in at most one goroutine at a time, for any number of requests.
type check struct {
	Check
	log *slog.Logger

	mu       sync.Mutex
	running  bool          // Run has not returned
	returned chan struct{} // closed when the latest call has returned
	began    time.Time     // start of the latest call
	status   string        // the latest result; "" if there is none
	text     string        // error text of the latest result
	at       time.Time     // start of the call with the latest result
}

// begin calls Run in a goroutine, unless a call is running or the latest result is still cached.
func (k *check) begin() {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	if k.running || k.status != "" && now.Sub(k.at) < k.Cache {
		return
	}
	k.running, k.began, k.returned = true, now, make(chan struct{})
	go k.call()
}

// call calls Run. A panic of Run, or of a method of its error, makes the check fail.
func (k *check) call() {
	ctx, cancel := context.WithTimeout(context.Background(), k.Timeout)
	defer cancel()
	status, text := statusFailing, exits // if Run calls runtime.Goexit
	defer func() {
		if v := recover(); v != nil {
			status, text = statusFailing, fmt.Sprintf("panic: %v", v)
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		k.running = false
		k.settle(status, text)
		close(k.returned)
	}()
	switch err := k.Run(ctx); {
	case err == nil && ctx.Err() != nil:
		status, text = statusTimeout, k.late()
	case err == nil:
		status, text = statusOK, ""
	case errors.Is(err, context.DeadlineExceeded):
		status, text = statusTimeout, err.Error()
	default:
		status, text = statusFailing, err.Error()
	}
}

// late returns the error text for a call of Run that exceeds Timeout.
func (k *check) late() string { return fmt.Sprintf(hangs+" within %v", k.Timeout) }

// settle records a result of the latest call, and logs changes of the state. k.mu must be held.
func (k *check) settle(status, text string) {
	switch failed := k.status != "" && k.status != statusOK; {
	case status != statusOK && !failed:
		k.log.Error("health check fails", "check", k.Name, "error", text)
	case status == statusOK && failed:
		k.log.Info("health check succeeds again", "check", k.Name)
	}
	k.status, k.text, k.at = status, text, k.began
}

// await returns the result of the latest call. It waits for the call until Timeout, or until ctx ends.
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

// report returns the latest result. A running call that exceeds Timeout has failed.
func (k *check) report() CheckReport {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.running && time.Since(k.began) >= k.Timeout {
		k.settle(statusTimeout, k.late())
	}
	if k.status == "" {
		return CheckReport{Name: k.Name, Status: statusUnknown}
	}
	return CheckReport{Name: k.Name, Status: k.status, Error: k.text, Age: time.Since(k.at)}
}
