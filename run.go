package dunlin

import (
	"context"
	"fmt"

	"github.com/dunlinhttp/dunlin/internal/caller"
	"github.com/dunlinhttp/dunlin/internal/lifecycle"
)

// Run serves Config.Addr, and Config.TLSAddr if there is one, until ctx ends or
// the process is told to stop by SIGINT or SIGTERM. Then it drains, see Drain,
// and returns nil when all running requests have finished, an error when they
// had not after Config.DrainTimeout.
//
// Listeners that systemd passed on (LISTEN_FDS) are served in place of the address to
// which they are bound. One named «http» (LISTEN_FDNAMES) is served in place of Addr, one
// named «https» by TLS, wherever they are bound. Others are closed, with a warning.
//
// On unix systems SIGHUP starts the program anew, from the file it was started
// from and with the same arguments, and hands it the listeners, those of ListenAndServe and
// ListenAndServeTLS included unless the system chose their port. As soon as the new process serves,
// this one drains, without the grace, and Run returns. If the new process does not come that far,
// that is logged and this one goes on. Not so for the SIGHUP of a terminal that was closed: it stops
// the program. With Config.DisableRestart SIGHUP is left to the program.
//
// A process has one Run at a time: Run panics while another one has not returned. Serve a second App by
// ListenAndServe or Serve, and call its Shutdown when Run has returned.
func (a *App) Run(ctx context.Context) error {
	defer a.logs.FlushLast(ctx)
	c := &a.config
	program := &lifecycle.Program{
		Addresses: lifecycle.Addresses{Addr: c.Addr, TLSAddr: c.TLSAddr},
		Log:       a.log,
		At:        caller.Here(),
		Open:      a.open,
		Drain:     a.Drain,
		Handover:  a.shutdown,
		Secrets:   a.tickets.Marshal,
		Inherit:   a.tickets.Unmarshal,
		Grace:     c.DrainGrace,
		Timeout:   c.DrainTimeout,
		NoRestart: c.DisableRestart,
	}
	if c.hasTLS() {
		var err error
		if program.Secure, err = a.tlsConfig(c.TLSCert, c.TLSKey); err != nil {
			return fmt.Errorf("dunlin: TLS: %w", err)
		}
	}
	if err := lifecycle.Run(ctx, program); err != nil {
		return fmt.Errorf("dunlin: %w", err)
	}
	return nil
}
