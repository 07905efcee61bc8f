package dunlin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
)

// Run serves Config.Addr, and Config.TLSAddr if there is one, until ctx ends or
// the process is told to stop by SIGINT or SIGTERM. Then it drains, see Drain,
// and returns nil when all running requests have finished, an error when they
// had not after Config.DrainTimeout.
//
// Listeners that systemd passed on (LISTEN_FDS) are served in place of those
// addresses: one named «https» (LISTEN_FDNAMES) by TLS, the others as Addr
// would be.
//
// On unix systems SIGHUP starts the program anew, from the file it was started
// from and with the same arguments, and hands it the listeners. As soon as the
// new process serves, this one drains, without the grace, and Run returns. If
// the new process does not come that far, that is logged and this one goes on.
// Not so for the SIGHUP of a terminal that went away: it stops the program.
func (a *App) Run(ctx context.Context) error {
	inherited, err := inherit()
	if err != nil {
		return fmt.Errorf("dunlin: inherited listeners: %w", err)
	}
	places, err := a.listen(inherited.listeners)
	if err != nil {
		return err
	}
	r := &runner{app: a, places: places, hangups: newHangups(), stop: make(chan os.Signal, 1)}
	defer r.hangups.close()
	signal.Notify(r.stop, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(r.stop)
	if err := r.start(); err != nil {
		return errors.Join(err, r.drain(a.shutdown))
	}
	tellManager("READY=1")
	inherited.tellReady()
	return r.wait(ctx)
}

// A runner is one call of Run.
type runner struct {
	app     *App
	places  []place
	failed  chan error // what a listener failed with, nil after a shutdown
	stop    chan os.Signal
	hangups *hangups
}

// start serves all places.
func (r *runner) start() error {
	r.failed = make(chan error, len(r.places))
	var all []*opened
	for i, p := range r.places {
		o, err := r.app.open(p)
		if err != nil {
			for _, rest := range r.places[i+1:] {
				err = errors.Join(err, rest.Close())
			}
			for _, o := range all {
				err = errors.Join(err, o.Close())
			}
			return err
		}
		all = append(all, o)
	}
	for _, o := range all {
		go func() { r.failed <- o.serve() }()
	}
	return nil
}

// wait serves until it is time to drain, and drains.
func (r *runner) wait(ctx context.Context) error {
	a := r.app
	var next *successor // while a restart is under way
	for {
		select {
		case err := <-r.failed:
			return errors.Join(err, r.end(next, a.shutdown))
		case <-ctx.Done():
			return r.end(next, a.Drain)
		case <-r.stop:
			return r.end(next, a.Drain)
		case <-r.hangups.c:
			switch {
			case r.hangups.terminalGone():
				if !r.hangups.nohup {
					return r.end(next, a.Drain)
				}
			case next != nil:
				a.config.Logger.Info("a restart is under way already")
			default:
				next = r.restart()
			}
		case err := <-next.outcome():
			if err == nil {
				a.config.Logger.Info("handed over", "pid", next.pid())
				tellManager(fmt.Sprintf("MAINPID=%d", next.pid()))
				return r.drain(a.shutdown)
			}
			a.config.Logger.Error("the new process failed: this one goes on", "error", err.Error())
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
	next, err := startSuccessor(r.places)
	if err != nil {
		r.app.config.Logger.Error("restart failed: this process goes on", "error", err.Error())
		return nil
	}
	r.app.config.Logger.Info("restarting", "pid", next.pid())
	return next
}

// drain ends the app by Drain or shutdown, within the configured time.
func (r *runner) drain(end func(context.Context) error) error {
	signal.Stop(r.stop) // a second signal ends the process at once
	c := &r.app.config
	c.Logger.Info("draining", "grace", c.DrainGrace, "timeout", c.DrainTimeout)
	ctx, cancel := context.WithTimeout(context.Background(), c.DrainGrace+c.DrainTimeout)
	defer cancel()
	if err := end(ctx); err != nil {
		return fmt.Errorf("dunlin: drain: requests were still running after %v: %w", c.DrainTimeout, err)
	}
	return nil
}

// An inheritedListener came from systemd or the process before this one.
type inheritedListener struct {
	net.Listener
	name string
}

// The names of places, as a socket unit may give them by FileDescriptorName=.
const (
	nameClear = "http"
	nameTLS   = "https"
)

func (p place) name() string {
	if p.config != nil {
		return nameTLS
	}
	return nameClear
}

// listen returns where to serve: what was inherited, and the configured addresses
// that it does not stand for.
func (a *App) listen(inherited []inheritedListener) (places []place, err error) {
	defer func() {
		if err != nil {
			for _, p := range places {
				_ = p.Close()
			}
		}
	}()
	c := &a.config
	var secure *tls.Config
	if c.hasTLS() {
		if secure, err = a.tlsConfig(c.TLSCert, c.TLSKey); err != nil {
			return nil, fmt.Errorf("dunlin: TLS: %w", err)
		}
	}
	main := place{nil, nil} // what Addr stands for
	if c.TLSAddr == "" {
		main.config = secure
	}
	var haveMain, haveTLS bool
	for _, in := range inherited {
		p := place{in.Listener, main.config}
		if in.name == nameTLS {
			p.config = secure
		}
		places = append(places, p)
		if in.name == nameTLS && secure == nil {
			return places, fmt.Errorf("dunlin: %s was inherited as %s, but there is no certificate", in.Addr(), nameTLS)
		}
		haveTLS = haveTLS || p.config != nil
		haveMain = haveMain || p.config == main.config
	}
	add := func(addr string, config *tls.Config) {
		if err != nil {
			return
		}
		var ln net.Listener
		if ln, err = net.Listen("tcp", addr); err == nil {
			places = append(places, place{ln, config})
		} else {
			err = fmt.Errorf("dunlin: listen: %w", err)
		}
	}
	if !haveMain {
		add(c.Addr, main.config)
	}
	if c.TLSAddr != "" && !haveTLS {
		add(c.TLSAddr, secure)
	}
	return places, err
}
