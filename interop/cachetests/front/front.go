// Package front has a cache in front of another server, as http-tests/cache-tests judges it.
package front

import (
	"log/slog"
	"net/url"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
)

// Register has the app answer by what the origin answers, and by what is kept of that: with the defaults of [middleware.NewCache], or as one
// sets it up in front of servers that others run.
func Register(app *dunlin.App, origin *url.URL, ofOthers bool, logger *slog.Logger) {
	config := middleware.CacheConfig{App: app, Logger: logger}
	if ofOthers {
		config.Revalidate, config.ObeyClients, config.Targets = true, true, []string{"CDN-Cache-Control"}
		config.Heuristic, config.StaleIfError = 24*time.Hour, time.Minute
	}
	app.Use(middleware.NewCache(config).Middleware())
	app.Handle("*", "/{path...}", middleware.Proxy(middleware.ProxyConfig{Target: origin, Logger: logger}))
}
