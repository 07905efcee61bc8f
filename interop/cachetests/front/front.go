// Package front has a cache in front of another server, for the tests of http-tests/cache-tests.
package front

import (
	"log/slog"
	"net/url"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
)

// Register makes the app answer with responses of the origin server or of a cache. The cache has the
// default settings of [middleware.NewCache]. If ofOthers is true, it has the settings for upstream
// servers that somebody else operates.
func Register(app *dunlin.App, origin *url.URL, ofOthers bool, logger *slog.Logger) {
	config := middleware.CacheConfig{App: app, Logger: logger}
	if ofOthers {
		config.Revalidate, config.ObeyClients, config.Targets = true, true, []string{"CDN-Cache-Control"}
		config.Heuristic, config.StaleIfError = 24*time.Hour, time.Minute
	}
	app.Use(middleware.NewCache(config).Middleware())
	app.Handle("*", "/{path...}", middleware.Proxy(middleware.ProxyConfig{Target: origin, Logger: logger}))
}
