// Package front has a cache in front of another server, as http-tests/cache-tests judges it.
package front

import (
	"log/slog"
	"net/url"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
)

// Register makes the app answer with responses of the origin or the cache. The cache has the defaults of
// [middleware.NewCache], or, with ofOthers, settings for upstream servers of third parties.
func Register(app *dunlin.App, origin *url.URL, ofOthers bool, logger *slog.Logger) {
	config := middleware.CacheConfig{App: app, Logger: logger}
	if ofOthers {
		config.Revalidate, config.ObeyClients, config.Targets = true, true, []string{"CDN-Cache-Control"}
		config.Heuristic, config.StaleIfError = 24*time.Hour, time.Minute
	}
	app.Use(middleware.NewCache(config).Middleware())
	app.Handle("*", "/{path...}", middleware.Proxy(middleware.ProxyConfig{Target: origin, Logger: logger}))
}
