package main

import (
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
	"github.com/dunlinhttp/dunlin/openapi"
	"github.com/dunlinhttp/dunlin/store"
	"github.com/dunlinhttp/dunlin/typed"
)

// service has the dependencies of the actions.
type service struct {
	db       *pgxpool.Pool
	sessions *middleware.Sessions[visit]
	pages    *typed.Pager[Task, int64]
	rounds   int // of the password hash
}

func newService(db *pgxpool.Pool, keys *middleware.KeyRing, dev bool) *service {
	return &service{
		db:       db,
		sessions: middleware.NewSessions[visit](middleware.SessionConfig{Keys: keys, Cookie: "session", Insecure: dev}),
		pages:    typed.NewPager(keys, "tasks", func(t Task) int64 { return t.ID }),
		rounds:   600_000,
	}
}

// newApp registers all routes, for main and for the tests.
func newApp(config dunlin.Config, s *service) *dunlin.App {
	app := dunlin.New(config)
	app.Get("/ready", app.Readiness()).Critical()
	app.Use(
		typed.Declares(middleware.CrossOrigin(), typed.Status{Code: 403, Description: "The request comes from another site"}),
		s.sessions.Middleware(),
	)

	slow := typed.Declares(
		middleware.RateLimit(middleware.RateLimitConfig{Limit: 20, Window: time.Minute, Store: store.NewMemory(store.MemoryConfig{})}).Middleware(),
		typed.Status{Code: 429, Description: "Too many requests"})
	typed.Post(app, "/users", s.register, slow).Name("register").Faults(nameTaken)
	typed.Post(app, "/login", s.logIn, slow).Name("logIn").Faults(wrongLogin)
	typed.Post(app, "/logout", s.logOut).Name("logOut")

	session := typed.APIKey("session", "cookie", "session")
	users := app.Group("", typed.Declares(s.onlyUsers, typed.Requires(session), typed.Unauthorized))
	tasks := typed.NewGroup(users).Tags("tasks")
	typed.Post(tasks, "/tasks", s.create).Name("createTask")
	typed.Get(tasks, "/tasks", s.list).Name("listTasks")
	typed.Get(tasks, "/tasks/{id}", s.show).Name("showTask").Faults(noTask)
	typed.Put(tasks, "/tasks/{id}", s.update).Name("updateTask").Faults(noTask)
	typed.Delete(tasks, "/tasks/{id}", s.remove).Name("removeTask").Faults(noTask)

	openapi.Serve(app, "/docs", openapi.Config{Title: "Tasks", Version: "1.0.0"})
	return app
}
