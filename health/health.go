// Package health answers health checks of load balancers and orchestrators from named checks of the service:
//
//	checks := health.New(app)
//	checks.Add("database", db.PingContext)
//	inner := app.Inner("127.0.0.1:9090")
//	inner.Get("/live", checks.Live()).Critical()
//	inner.Get("/ready", checks.Ready()).Critical()
//
// Liveness reports whether the process works: Kubernetes restarts the process when a liveness check fails. Readiness reports whether
// the process should get requests: when it fails, a load balancer sends requests to other processes. A check of a dependency, such as
// a database, belongs to readiness alone, since a restart does not repair the database.
//
// Answers contain the names and states of the checks, but not their errors, which may contain addresses and names of hosts. An error
// is logged when the state of its check changes. [stats.Snapshot].Added has the states and errors under "health".
package health

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/ext"
)

// These are the defaults of a Check.
const (
	DefaultTimeout = 2 * time.Second
	DefaultCache   = time.Second
)

// A Check is a named check with its settings.
type Check struct {
	// Name is the name of the check in answers, in the log and in Stats.
	Name string

	// Run returns nil if the checked part of the service works. Its context ends after Timeout. Calls do not overlap,
	// so a check that does not return occupies one goroutine.
	Run func(context.Context) error

	// Timeout is the maximum duration of Run. After this time the check fails, even if Run ignores its context and
	// continues. Default: DefaultTimeout.
	Timeout time.Duration

	// Cache is the time for which a result is reused, which limits the cost of frequent requests. A negative value disables the
	// cache. Default: DefaultCache.
	Cache time.Duration

	// Live also makes the check a part of liveness: if it fails, the orchestrator restarts the process. Use it for states that
	// only a restart ends, such as a deadlock. Default: the check is a part of readiness only.
	Live bool
}

// Checks are the health checks of an app. Their methods are safe for concurrent use.
type Checks struct {
	ready dunlin.Action // of the app
	log   *slog.Logger

	mu  sync.Mutex
	all []*check
}

// New returns an empty set of checks for an app, and adds their states to App.Stats under the name "health". Call it once
// for an app: a second call panics.
func New(app *dunlin.App) *Checks {
	c := &Checks{ready: app.Readiness(), log: app.Config().Logger}
	ext.AddStats(app, "health", func() any { return c.reports() })
	return c
}

// Add adds a check of readiness with the default settings.
func (c *Checks) Add(name string, run func(context.Context) error) {
	c.AddCheck(Check{Name: name, Run: run})
}

// AddCheck adds a check. It panics if the check has no name or no function, or if another check has its name.
func (c *Checks) AddCheck(config Check) {
	if config.Name == "" || config.Run == nil {
		panic("health: AddCheck: the check has no name, or no function")
	}
	if config.Timeout == 0 {
		config.Timeout = DefaultTimeout
	}
	if config.Cache == 0 {
		config.Cache = DefaultCache
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, other := range c.all {
		if other.Name == config.Name {
			panic(fmt.Sprintf("health: AddCheck: the name %q is taken", config.Name))
		}
	}
	c.all = append(c.all[:len(c.all):len(c.all)], &check{Check: config, log: c.log})
}

// Report is an answer to a health check.
type Report struct {
	Status string        `json:"status"` // ok, failing or draining
	Checks []CheckReport `json:"checks,omitempty"`
}

// CheckReport is the state of one check.
type CheckReport struct {
	Name   string        `json:"name"`
	Status string        `json:"status"`          // ok, failing, timeout, or unknown before the first call has ended
	Error  string        `json:"error,omitempty"` // only in Stats
	Age    time.Duration `json:"ageNs"`           // time since the start of the call with this status
}

var noStore = dunlin.NewHeaderBlock("Cache-Control", "no-store")

// Live returns the action for liveness. It answers 200 if all checks with Live succeed, even while the app drains, and
// 503 otherwise.
func (c *Checks) Live() dunlin.Action {
	return func(r *dunlin.Request) dunlin.Response { return c.answer(r, true) }
}

// Ready returns the action for readiness. It answers 200 if all checks succeed, and 503 if one fails or the app drains.
func (c *Checks) Ready() dunlin.Action {
	return func(r *dunlin.Request) dunlin.Response {
		if c.ready(r).StatusCode() != http.StatusOK {
			return dunlin.JSON(Report{Status: "draining"}).Status(http.StatusServiceUnavailable).With(noStore)
		}
		return c.answer(r, false)
	}
}

// answer runs the checks concurrently and answers with their states.
func (c *Checks) answer(r *dunlin.Request, live bool) dunlin.Response {
	report, status := Report{Status: "ok"}, http.StatusOK
	var wanted []*check
	for _, k := range c.list() {
		if k.Live || !live {
			wanted = append(wanted, k)
			k.begin() // start all checks before waiting for the first
		}
	}
	for _, k := range wanted {
		state := k.await(r.Context())
		if state.Status != statusOK {
			report.Status, status = "failing", http.StatusServiceUnavailable
		}
		state.Error = ""
		report.Checks = append(report.Checks, state)
	}
	return dunlin.JSON(report).Status(status).With(noStore)
}

// reports returns the latest states without calling a check.
func (c *Checks) reports() []CheckReport {
	var reports []CheckReport
	for _, k := range c.list() {
		reports = append(reports, k.report())
	}
	return reports
}

func (c *Checks) list() []*check {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all
}
