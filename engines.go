package dunlin

import (
	"cmp"
	"net/http"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/clientaddr"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/loophttp"
	"github.com/dunlinhttp/dunlin/stats"
)

// tellAdapters fills in the server state that adapters use.
func (a *App) tellAdapters() {
	c, s := &a.config, &a.server
	s.Settings = exchange.Settings{
		HeadTimeout:  c.Timeouts.Head,
		BodyTimeout:  c.Timeouts.Body,
		WriteTimeout: c.Timeouts.Write,
		IdleTimeout:  c.Timeouts.Idle,

		TCPKeepAlive: c.Timeouts.TCPKeepAlive,
		MinBodyRate:  c.Limits.MinBodyRate,
		MinWriteRate: c.Limits.MinWriteRate,
		QueueTarget:  c.Limits.QueueTarget,

		MaxBody:    int64(c.Limits.MaxBody),
		MaxHead:    int(c.Limits.MaxHead),
		MaxHeaders: c.Limits.MaxHeaders,

		MaxRequestsPerConnection: c.Limits.MaxRequestsPerConnection,
		MaxStreamsPerConnection:  c.Limits.MaxStreamsPerConnection,
		MaxConnections:           cmp.Or(c.Limits.MaxConnections, admission.DescriptorsForConnections()),
		MaxConnectionsPerAddress: c.Limits.MaxConnectionsPerAddress,
		MaxConnectionsPerLoop:    c.Limits.MaxConnectionsPerLoop,

		ProxyHeader:   c.proxyHeader(),
		H2C:           c.H2C != H2COff,
		H2CUpgrade:    c.H2C == H2CUpgrade,
		AdaptiveLimit: c.Limits.Adaptive,
	}
	s.Pipeline, s.Handler = (*pipeline)(a), a
	s.Log, s.Shed = a.asyncLog, &a.shed
	s.Addresses = admission.NewAddresses(c.Limits.MaxConnectionsPerAddress)
	trust, _ := clientaddr.ParseTrust(c.Proxy.Trusted) // validate has checked it
	s.Proxies = clientaddr.NewSource(trust, http.CanonicalHeaderKey(c.Proxy.ForwardedHeader))
	s.Budget = &a.memory.Budget
	s.Budget.MaxWait = c.Timeouts.Memory
	s.Budget.SetCaps(int64(c.Limits.MaxMemoryPerConnection), 2*int64(minCap+c.Limits.MaxHead), int64(c.Limits.MaxMemoryPerAddress))
	s.Unmatched.NoRoute = true
	s.Unmatched.Counts.Init()
	s.Counting.Store(c.RouteStats == stats.On)
}

// proxyHeader returns the time limit for the PROXY protocol header of connections from trusted proxies, or
// 0 if their connections do not begin with one.
func (c *Config) proxyHeader() time.Duration {
	if !c.Proxy.Protocol {
		return 0
	}
	return c.Timeouts.Head
}

// loopSettings returns the settings of the loop engine. The memory limit must be known.
func (a *App) loopSettings() loophttp.Settings {
	return loophttp.Settings{
		Server:        &a.server,
		MaxConcurrent: cmp.Or(a.config.Limits.MaxConcurrent, a.memory.MaxConcurrent()),
		SecureMemory:  a.memory.SecureMemory(),
		OnQuiet:       a.memory.OnQuiet,
	}
}
