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

// A Program is the service that Run runs.
type Program struct {
	Addresses
	Log *slog.Logger
	At  fmt.Stringer // position of the call of Run, for messages

	// Open makes the server of an endpoint, and returns the function that serves it until a shutdown has finished or the listener
	// fails. If Open returns an error, it has closed the listener. An inner address has an Open of its own.
	Open func(Endpoint) (serve func() error, err error)
	// Drain shuts the program down in order. Handover shuts it down after another process has started to serve. Both close
	// the remaining connections when the context ends, and return its error.
	Drain, Handover func(context.Context) error
	// Grace is the time that Drain waits before it stops accepting. Timeout is the time for running requests after
	// that.
	Grace, Timeout time.Duration
	// Secrets returns secrets for the next process, at most 4,096 bytes, which must not be written to disk. The next process gets
	// them by Inherit before Open is called.
	Secrets func() []byte
	Inherit func([]byte) error
	// NoRestart disables the restart by SIGHUP.
	NoRestart bool
}

// Run listens and serves until ctx is done or a signal requests the shutdown. Then it drains. It returns nil if the drain ended
// in time. SIGHUP passes the listeners on to a new process. Run panics if another Run is active in this process.
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
	endpoints, err := p.listen()
	if err != nil {
		return err
	}
	r := &runner{Program: p, endpoints: endpoints, hangups: newHangups(p.NoRestart), stop: make(chan os.Signal, 1)}
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
	endpoints []Endpoint
	failed    chan error // errors of listeners; nil after a shutdown
	stop      chan os.Signal
	hangups   *hangups
}

// start serves all endpoints.
func (r *runner) start() error {
	r.failed = make(chan error, len(r.endpoints))
	var all []func() error
	for i, p := range r.endpoints {
		open := r.Open
		if p.open != nil {
			open = p.open
		}
		serve, err := open(p)
		if err != nil {
			for k, other := range r.endpoints {
				if k != i { // listener k is closed already
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

// deepen grows the stack of the goroutine that serves a listener, while the stack is empty. If the stack grew later, the runtime
// would copy and adjust frames, and read tables of the program that are not needed otherwise.
//
//go:noinline
func deepen(i int) byte {
	var room [4 << 10]byte
	return room[i]
}

// wait serves until a reason to drain, then drains.
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
			r.Log.Error("the new process failed: this one continues", "error", err.Error())
			next = nil
		}
	}
}

// end ends a starting successor, if there is one, and drains.
func (r *runner) end(next *successor, end func(context.Context) error) error {
	next.abandon()
	tellManager("STOPPING=1")
	return r.drain(end)
}

// restart starts a successor. It returns nil if that fails.
func (r *runner) restart() *successor {
	next, err := r.hangups.startSuccessor(r.endpoints, r.Secrets())
	if err != nil {
		r.Log.Error("restart failed: this process continues", "error", err.Error())
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
