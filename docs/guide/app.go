package main

import (
	"fmt"
	"html"
	"log/slog"
	"strings"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
	"github.com/dunlinhttp/dunlin/openapi"
	"github.com/dunlinhttp/dunlin/store"
	"github.com/dunlinhttp/dunlin/typed"
)

// A service is what its actions have in common.
type service struct {
	store    store.Store
	log      *slog.Logger
	links    links
	accounts accounts
	sessions *middleware.Sessions[visit]
	clicked  chan string // codes of links, to be counted
	watchers watchers
}

func newService(st store.Store, log *slog.Logger) *service {
	return &service{
		store: st, log: log, clicked: make(chan string, 10_000),
		sessions: middleware.NewSessions[visit](middleware.SessionConfig{Store: st}),
	}
}

var cors = middleware.CORSConfig{
	Origins:     []string{"https://app.example.com"},
	Headers:     []string{"Content-Type", "Idempotency-Key"},
	Credentials: true,
	MaxAge:      time.Hour,
}

// app registers everything.
func (s *service) app(config dunlin.Config) *dunlin.App {
	app := dunlin.New(config)

	// Features apply to every answer: also the app's own 404, a panic's 500, a refusal under overload.
	app.Install(
		middleware.RequestID("X-Request-ID"), // identifies the request
		middleware.AccessLog(middleware.AccessLogConfig{Logger: s.log}),
		middleware.SecureHeaders(middleware.SecureHeadersConfig{HSTS: 365 * 24 * time.Hour}),
		middleware.CORS(cors),
	)

	// Critical routes answer even under overload. They are registered before all middleware.
	app.Get("/ready", app.Readiness()).Critical()
	app.Get("/stats", func(*dunlin.Request) dunlin.Response { return dunlin.JSON(app.Stats()) }).Critical()

	app.Use(
		traced,
		typed.Declares(
			middleware.CrossOrigin(cors.Origins...),
			typed.Status{Code: 403, Description: "The request comes from a page of another origin"}),
		typed.Declares(
			middleware.RateLimit(middleware.RateLimitConfig{Limit: 600, Window: time.Minute, Store: s.store}).Middleware(),
			typed.Status{Code: 429, Description: "Too many requests"}),
		s.sessions.Middleware(),
	)

	logins := app.Group("")
	logins.Install(middleware.RateLimit(middleware.RateLimitConfig{
		Name: "login", Limit: 10, Window: time.Minute, Store: s.store, Away: middleware.RateAwayRefuse,
	}))
	logins.Post("/login", dunlin.Try(s.login))
	app.Post("/logout", dunlin.Try(s.logout))

	s.registerAPI(app)

	cache := middleware.NewCache(middleware.CacheConfig{App: app, StaleIfError: time.Minute})
	app.Get("/top", dunlin.Try(s.top), cache.Middleware())
	app.Get("/{code}", dunlin.Try(s.follow))
	return app
}

// registerAPI registers the operations that the OpenAPI document has.
func (s *service) registerAPI(app *dunlin.App) {
	cookie := typed.APIKey("session", "cookie", "__Host-session")
	api := app.Group("/api", typed.Declares(s.onlyUsers, typed.Requires(cookie), typed.Unauthorized))
	once := typed.Declares(middleware.Idempotency(middleware.IdempotencyConfig{Store: s.store, User: s.user}),
		typed.Status{Code: 409, Description: "The request with this Idempotency-Key has not ended"},
		typed.Status{Code: 422, Description: "The Idempotency-Key was used for another request"},
		typed.Status{Code: 429, Description: "The user has sent too many Idempotency-Keys"},
		typed.Status{Code: 503, Description: "Temporarily unavailable; try again later"})
	typed.Get(api, "/links", s.list).Name("listLinks").Summary("Lists one's links")
	typed.Post(api, "/links", s.create, once).Name("createLink").Faults(codeTaken).Summary("Shortens a link")
	typed.Delete(api, "/links/{code}", s.remove).Name("removeLink").Faults(noLink).Summary("Removes a link")
	typed.Get(api, "/links/{code}", s.show).Name("showLink").Faults(noLink).Summary("Shows a link")
	typed.Put(api, "/links/{code}", s.change).Name("changeLink").Faults(noLink, typed.PreconditionFailed).Summary("Has a link lead elsewhere")
	typed.Post(api, "/links/import", s.importLinks).Name("importLinks").Summary("Shortens the links of a CSV file").
		Route().MaxBody(64 << 20).Timeout(5 * time.Minute)
	typed.Get(api, "/clicks", s.watch).Name("watchClicks").Summary("Tells of clicks as they happen")
	openapi.Serve(app, "/docs", openapi.Config{Title: "Links", Version: "1.0.0"})
}

// follow redirects a visitor to the target of a link.
func (s *service) follow(r *dunlin.Request) (dunlin.Response, error) {
	l, ok := s.links.get(r.Param("code"))
	if !ok {
		return dunlin.NotFound(), nil
	}
	select {
	case s.clicked <- l.Code:
	default: // the queue is full
		s.log.WarnContext(r.Context(), "a click was not counted", "code", l.Code)
	}
	return dunlin.Redirect(l.URL).Status(302), nil
}

// top is a page that is the same for everybody: it may be kept.
func (s *service) top(*dunlin.Request) (dunlin.Response, error) {
	var page strings.Builder
	for _, l := range s.links.mostClicked(10) {
		fmt.Fprintf(&page, "<li>%s: %d</li>", html.EscapeString(l.Code), l.Clicks)
	}
	return dunlin.HTML("<ol>" + page.String() + "</ol>").CachePublic(10 * time.Second), nil
}
