package main

import (
	"cmp"
	"database/sql"
	"errors"
	"log/slog"
	"net/http"
	"path"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
	"github.com/dunlinhttp/dunlin/openapi"
	"github.com/dunlinhttp/dunlin/typed"
)

// conduit is the service.
type conduit struct {
	db     *sql.DB
	secret []byte // signs tokens
	log    *slog.Logger
}

var cors = middleware.CORSConfig{Origins: []string{"*"}, Headers: []string{"Content-Type", "Authorization"}}

// newApp registers all routes. The group api has the routes without login, readers those with optional login, and users those with
// required login.
func newApp(config dunlin.Config, c *conduit) *dunlin.App {
	config.Problems = dunlin.FormatProblems("application/json", envelope)
	app := dunlin.New(config)
	app.OnError(failure)
	app.Install(middleware.AccessLog(middleware.AccessLogConfig{Logger: c.log}), middleware.RequestID("X-Request-ID"), middleware.CORS(cors))
	typed.Configure(app, typed.Config{InvalidStatus: http.StatusUnprocessableEntity})

	app.Get("/ready", app.Readiness()).Critical()
	app.Get("/health", c.health).Critical()

	token := typed.APIKey("token", "header", "Authorization")
	api := app.Group("/api")
	readers := api.Group("", typed.Declares(optional(c.login()), typed.Unauthorized))
	users := api.Group("", typed.Declares(c.login(), typed.Requires(token), typed.Unauthorized))

	typed.Post(api, "/users", c.register).Name("register").Faults(taken, longPassword)
	typed.Post(api, "/users/login", c.logIn).Name("logIn").Faults(wrongLogin)
	typed.Get(users, "/user", c.currentUser).Name("currentUser").Faults(noUser)
	typed.Put(users, "/user", c.updateUser).Name("updateUser").Faults(noUser, taken, longPassword)

	typed.Get(readers, "/profiles/{username}", c.profile).Name("profile").Faults(noUser)
	typed.Post(users, "/profiles/{username}/follow", c.follow).Name("follow").Faults(noUser)
	typed.Delete(users, "/profiles/{username}/follow", c.unfollow).Name("unfollow").Faults(noUser)

	typed.Get(readers, "/articles", c.articles).Name("articles")
	typed.Get(users, "/articles/feed", c.feed).Name("feed")
	typed.Post(users, "/articles", c.createArticle).Name("createArticle")
	typed.Get(readers, "/articles/{slug}", c.article).Name("article").Faults(noArticle)
	typed.Put(users, "/articles/{slug}", c.updateArticle).Name("updateArticle").Faults(noArticle, notYours)
	typed.Delete(users, "/articles/{slug}", c.deleteArticle).Name("deleteArticle").Faults(noArticle, notYours)
	typed.Post(users, "/articles/{slug}/favorite", c.favorite).Name("favorite").Faults(noArticle)
	typed.Delete(users, "/articles/{slug}/favorite", c.unfavorite).Name("unfavorite").Faults(noArticle)

	typed.Get(readers, "/articles/{slug}/comments", c.comments).Name("comments").Faults(noArticle)
	typed.Post(users, "/articles/{slug}/comments", c.addComment).Name("addComment").Faults(noArticle)
	typed.Delete(users, "/articles/{slug}/comments/{id}", c.deleteComment).Name("deleteComment").Faults(noComment, notYours)
	typed.Get(api, "/tags", c.tags).Name("tags")

	openapi.Serve(app, "/docs", openapi.Config{Title: "Conduit", Version: "1.0.0"})
	return app
}

// These are the faults of the operations.
var (
	taken        = typed.NewFault(422, "taken", "username or email is taken")
	longPassword = typed.NewFault(422, "long-password", "password has more than 72 bytes")
	wrongLogin   = typed.NewFault(422, "wrong-login", "email or password is wrong")
	noUser       = typed.NewFault(404, "no-user", "there is no such user")
	noArticle    = typed.NewFault(404, "no-article", "there is no such article")
	noComment    = typed.NewFault(404, "no-comment", "there is no such comment")
	notYours     = typed.NewFault(403, "not-yours", "it belongs to another user")
)

// Errors is the body of all error answers. It has messages by the name of the invalid member, or under "body".
type Errors struct {
	Errors map[string][]string `json:"errors"`
}

func envelope(_ *dunlin.AnswerInfo, p *dunlin.ProblemDetails) Errors {
	messages := map[string][]string{}
	if invalid, ok := errors.AsType[*typed.Invalid](p); ok {
		for _, v := range invalid.Violations {
			name := cmp.Or(v.Name, path.Base(v.Pointer)) // the pointer "#" means the whole body
			messages[name] = append(messages[name], v.Text())
		}
	} else {
		messages["body"] = []string{cmp.Or(p.Detail, p.Title)}
	}
	return Errors{messages}
}

// failure answers errors of the database.
func failure(_ *dunlin.Request, err error) dunlin.Response {
	switch {
	case malformed(err):
		return dunlin.Problem(&dunlin.ProblemDetails{Status: http.StatusUnprocessableEntity, Detail: "a text cannot be stored", Cause: err})
	case away(err):
		return dunlin.Problem(&dunlin.ProblemDetails{Status: http.StatusServiceUnavailable, Temporary: true, Cause: err})
	}
	return dunlin.Response{} // the answer is then that of dunlin.Error
}
