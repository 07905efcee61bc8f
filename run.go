package dunlin

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/dunlinhttp/dunlin/internal/caller"
	"github.com/dunlinhttp/dunlin/internal/lifecycle"
)

// Run serves Config.Addr, Config.TLS.Addr if set, and the addresses of Inner, until ctx ends or the process receives
// SIGINT or SIGTERM. Then it drains, see Drain. It returns nil when all running requests and workers have finished,
// and an error if some have not finished after Config.Process.DrainTimeout.
//
// A listener passed on by systemd (LISTEN_FDS) is served in place of the address to which it is bound. Regardless of
// its address, a listener with the name «http» (LISTEN_FDNAMES) is served in place of Addr, «https» over TLS, and
// «inner» in place of the first address of Inner («inner-2»: the second). Other listeners are closed, with a warning.
//
// On unix systems SIGHUP restarts the program, from the same file and with the same arguments. The new process
// receives the listeners, including those of ListenAndServe and ListenAndServeTLS unless the system chose their port.
// When the new process serves, the old process drains, without DrainGrace, and its Run returns. If the new process fails
// before it serves, the failure is logged and the old process continues. A SIGHUP because the terminal was closed stops
// the program instead. With Config.Process.DisableRestart Run does not handle SIGHUP.
//
// A process has one Run at a time: Run panics while another call of Run has not returned. Serve a second App by
// ListenAndServe or Serve, and call its Shutdown when Run has returned.
func (a *App) Run(ctx context.Context) error {
	defer a.logs.FlushLast(ctx)
	c := &a.config
	var inner []lifecycle.Inner
	for _, in := range a.inner {
		inner = append(inner, lifecycle.Inner{Addr: in.config.Addr, Open: in.open})
	}
	program := &lifecycle.Program{
		Addresses: lifecycle.Addresses{Addr: c.Addr, TLSAddr: c.TLS.Addr, Inner: inner},
		Log:       a.log,
		At:        caller.Here(),
		Open:      a.open,
		Drain:     a.Drain,
		Handover:  a.shutdown,
		Secrets:   a.tickets.Marshal,
		Inherit:   a.tickets.Unmarshal,
		Grace:     c.Process.DrainGrace,
		Timeout:   c.Process.DrainTimeout,
		NoRestart: c.Process.DisableRestart,
	}
	if c.TLS.served() {
		var err error
		if program.Secure, err = a.tlsConfig(c.TLS.Cert, c.TLS.Key); err != nil {
			return fmt.Errorf("dunlin: TLS: %w", err)
		}
	}
	if err := lifecycle.Run(ctx, program); err != nil {
		return fmt.Errorf("dunlin: %w", err)
	}
	return nil
}

// Inner returns a group whose routes are served only on the second address addr, in clear text, for metrics, profiles and the like:
//
//	inner := app.Inner("127.0.0.1:9090")
//	inner.Get("/stats", func(*dunlin.Request) dunlin.Response { return dunlin.JSON(app.Stats()) })
//
// Public addresses do not serve these routes, and the inner address does not serve the routes of a. Inner returns the same group
// for the same address. [Group.App] of the group is a separate app. It has the settings of a, but no Timeouts.Action, trusted
// proxies, TLS and Ready, and no middleware and features of a. It has its own event loops and counts, so it answers while a is
// overloaded. It shares the memory limit, workers and logger of a, and ends together with a.
//
// Run of a serves the inner address, before the public addresses, so call Inner before Run. Serve and ListenAndServe do not serve
// it. Tests serve the app of the group, for example with dunlintest.Serve. Addrs of that app returns the port chosen for port 0.
func (a *App) Inner(addr string) *Group {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, in := range a.inner {
		if in.config.Addr == addr {
			return &in.routes
		}
	}
	err := lifecycle.CheckAddress(addr)
	switch {
	case a.isInner:
		err = errors.New("the app is that of an inner address: call Inner of the public one")
	case err == nil && a.servers.Serving():
		err = errors.New("the app serves already")
	}
	if err != nil {
		panic(fmt.Sprintf("dunlin: Inner(%q): %v (called at %s)", addr, err, callerPlace()))
	}
	c := a.config
	c.Addr, c.TLS = addr, TLSConfig{}
	c.Timeouts.Action, c.Proxy.Trusted, c.Proxy.Protocol, c.Ready = 0, nil, false, nil
	in := (&App{config: c, servers: a.servers, memory: a.memory, logs: a.logs, isInner: true}).begin()
	a.inner = append(a.inner, in)
	return &in.routes
}

// Addrs returns the addresses of the listeners that the app serves or has served, in order.
func (a *App) Addrs() []net.Addr { return a.ports.Addrs() }
