package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// A Program is what Run runs.
type Program struct {
	Addresses
	Log *slog.Logger
	At  fmt.Stringer // where Run was called, for messages

	// Open makes the server of a place, and returns the function that serves it until a
	// shutdown has finished or the listener fails. When Open fails, it closes the
	// listener. An inner address has an Open of its own.
	Open func(Place) (serve func() error, err error)
	// Drain ends the program in order; Handover does when another process serves
	// already. Both close what is left when the context ends, and return its error.
	Drain, Handover func(context.Context) error
	// Grace and Timeout are how long Drain waits before it stops accepting, and for
	// running requests after that.
	Grace, Timeout time.Duration
	// Secrets returns what only memory may keep, a few KB, for the process after this one, which gets it by
	// Inherit before Open.
	Secrets func() []byte
	Inherit func([]byte) error
	// NoRestart leaves SIGHUP alone.
	NoRestart bool
}

// Run listens and serves until ctx ends or a signal asks for the end, drains, and
// returns nil when that was in time. SIGHUP hands the listeners to a new process.
// It panics if another Run is under way in this process.
func Run(ctx context.Context, p *Program) error {
	err := process.begin(p)
	defer process.end()
	if err != nil {
		return err
	}
	if secrets := process.takeSecrets(); secrets != nil {
		if err := p.Inherit(secrets); err != nil {
			p.Log.Warn("inherited secrets: this process has its own", "error", err.Error())
		}
	}
	places, err := p.listen()
	if err != nil {
		return err
	}
	r := &runner{Program: p, places: places, hangups: newHangups(p.NoRestart), stop: make(chan os.Signal, 1)}
	defer r.hangups.close()
	signal.Notify(r.stop, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(r.stop)
	if err := r.start(); err != nil {
		return errors.Join(err, r.drain(p.Handover))
	}
	tellManager("READY=1")
	process.ready(p.Log)
	return r.wait(ctx)
}

// A runner is one call of Run.
type runner struct {
	*Program
	places  []Place
	failed  chan error // what a listener failed with, nil after a shutdown
	stop    chan os.Signal
	hangups *hangups
}

// start serves all places.
func (r *runner) start() error {
	r.failed = make(chan error, len(r.places))
	var all []func() error
	for i, p := range r.places {
		open := r.Open
		if p.open != nil {
			open = p.open
		}
		serve, err := open(p)
		if err != nil {
			for k, other := range r.places {
				if k != i { // that one is closed
					err = errors.Join(err, other.Close())
				}
			}
			return err
		}
		all = append(all, serve)
	}
	for _, serve := range all {
		go func() {
			deepen(0)
			r.failed <- serve()
		}()
	}
	return nil
}

// deepen has a stack with room for what serving a listener calls, at once, and while there is nothing on it: to copy
// and adjust it later, tables of the program would be read that nothing else needs.
//
//go:noinline
func deepen(i int) byte {
	var room [4 << 10]byte
	return room[i]
}

// wait serves until it is time to drain, and drains.
func (r *runner) wait(ctx context.Context) error {
	var next *successor // while a restart is under way
	for {
		select {
		case err := <-r.failed:
			return errors.Join(err, r.end(next, r.Handover))
		case <-ctx.Done():
			return r.end(next, r.Drain)
		case <-r.stop:
			return r.end(next, r.Drain)
		case <-r.hangups.c:
			switch {
			case r.hangups.terminalGone():
				if !r.hangups.nohup {
					return r.end(next, r.Drain)
				}
			case next != nil:
				r.Log.Info("a restart is under way already")
			default:
				next = r.restart()
			}
		case err := <-next.outcome():
			if err == nil {
				r.Log.Info("handed over", "pid", next.pid())
				tellManager(fmt.Sprintf("MAINPID=%d", next.pid()))
				return r.drain(r.Handover)
			}
			r.Log.Error("the new process failed: this one goes on", "error", err.Error())
			next = nil
		}
	}
}

// end is drain when nobody takes over.
func (r *runner) end(next *successor, end func(context.Context) error) error {
	next.abandon()
	tellManager("STOPPING=1")
	return r.drain(end)
}

// restart starts a successor; nil when that fails.
func (r *runner) restart() *successor {
	next, err := r.hangups.startSuccessor(r.places, r.Secrets())
	if err != nil {
		r.Log.Error("restart failed: this process goes on", "error", err.Error())
		return nil
	}
	r.Log.Info("restarting", "pid", next.pid())
	return next
}

// drain ends the program by Drain or Handover, within the configured time.
func (r *runner) drain(end func(context.Context) error) error {
	signal.Stop(r.stop) // a second signal ends the process at once
	r.Log.Info("draining", "grace", r.Grace, "timeout", r.Timeout)
	ctx, cancel := context.WithTimeout(context.Background(), r.Grace+r.Timeout)
	defer cancel()
	if err := end(ctx); err != nil {
		return fmt.Errorf("drain: not finished after %v: %w", r.Timeout, err)
	}
	return nil
}
