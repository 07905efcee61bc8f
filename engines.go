package dunlin

import (
	"cmp"
	"net/http"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/clientaddr"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/loophttp"
)

// tellAdapters fills in the server state that adapters use.
func (a *App) tellAdapters() {
	c, s := &a.config, &a.server
	s.Settings = exchange.Settings{
		HeadTimeout:  c.HeadTimeout,
		BodyTimeout:  c.BodyTimeout,
		WriteTimeout: c.WriteTimeout,
		IdleTimeout:  c.IdleTimeout,

		TCPKeepAlive: c.TCPKeepAlive,
		MinBodyRate:  c.MinBodyRate,
		MinWriteRate: c.MinWriteRate,
		QueueTarget:  c.QueueTarget,

		MaxBody:    c.MaxBody,
		MaxHead:    c.MaxHead,
		MaxHeaders: c.MaxHeaders,

		MaxRequestsPerConnection: c.MaxRequestsPerConnection,
		MaxStreamsPerConnection:  c.MaxStreamsPerConnection,
		MaxConnections:           cmp.Or(c.MaxConnections, admission.DescriptorsForConnections()),
		MaxConnectionsPerAddress: c.MaxConnectionsPerAddress,
		MaxConnectionsPerLoop:    c.MaxConnectionsPerLoop,

		ProxyHeader:   c.proxyHeader(),
		H2C:           c.H2C || c.H2CUpgrade,
		H2CUpgrade:    c.H2CUpgrade,
		AdaptiveLimit: c.AdaptiveLimit,
	}
	s.Pipeline, s.Handler = (*pipeline)(a), a
	s.Log, s.Shed = a.asyncLog, &a.shed
	s.Addresses = admission.NewAddresses(c.MaxConnectionsPerAddress)
	trust, _ := clientaddr.ParseTrust(c.TrustedProxies) // validate has tried
	s.Proxies = clientaddr.NewSource(trust, http.CanonicalHeaderKey(c.ForwardedHeader))
	s.Budget, s.Holders = &a.memory.Budget, a.memory.Holders
	s.Holders.SetCaps(int64(c.MaxMemoryPerConnection), 2*int64(leastCap+c.MaxHead), int64(c.MaxMemoryPerAddress))
	s.Unmatched.NoRoute = true
	s.Unmatched.Counts.Init()
	s.Counting.Store(c.RouteStats == StatsOn)
}

// proxyHeader returns the time limit for the PROXY protocol header of proxies' connections, or 0 if
// they have none.
func (c *Config) proxyHeader() time.Duration {
	if !c.ProxyProtocol {
		return 0
	}
	return c.HeadTimeout
}

// loopSettings returns the settings of the loop engine. The memory limit must be known.
func (a *App) loopSettings() loophttp.Settings {
	return loophttp.Settings{
		Server:        &a.server,
		MaxConcurrent: cmp.Or(a.config.MaxConcurrent, a.memory.MaxConcurrent()),
		SecureMemory:  a.memory.SecureMemory(),
		OnQuiet:       a.memory.OnQuiet,
	}
}
