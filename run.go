package dunlin

import (
	"context"
	"fmt"

	"github.com/dunlinhttp/dunlin/internal/lifecycle"
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
// Not so for the SIGHUP of a terminal that was closed: it stops the program. With
// Config.DisableRestart SIGHUP is left to the program.
func (a *App) Run(ctx context.Context) error {
	defer a.logs.FlushLast(ctx)
	c := &a.config
	program := &lifecycle.Program{
		Addresses: lifecycle.Addresses{Addr: c.Addr, TLSAddr: c.TLSAddr},
		Log:       a.log,
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
