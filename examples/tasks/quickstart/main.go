// Command quickstart is the example of README.md. A test checks that both have the same code.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"log"

	_ "modernc.org/sqlite"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
	"github.com/dunlinhttp/dunlin/openapi"
	"github.com/dunlinhttp/dunlin/typed"
)

type Task struct {
	ID    int64  `json:"id"`
	Title string `json:"title"`
}

type CreateTask struct {
	Body struct {
		Title string `json:"title" minLength:"1" maxLength:"200"`
	}
}

var login = middleware.BasicAuth(middleware.BasicAuthConfig{
	Realm: "tasks", Check: middleware.Passwords(map[string]string{"ada": "correct horse"}),
})

func newApp(config dunlin.Config, db *sql.DB) *dunlin.App {
	app := dunlin.New(config)
	users := app.Group("/tasks", typed.Declares(login, typed.Requires(typed.BasicAuth("login"))))
	typed.Post(users, "", func(r *dunlin.Request, in CreateTask) (typed.Created[Task], error) {
		t := Task{Title: in.Body.Title}
		err := db.QueryRowContext(r.Context(), "insert into tasks (owner, title) values (?, ?) returning id",
			middleware.User(r), t.Title).Scan(&t.ID)
		return typed.Created[Task]{Location: fmt.Sprint("/tasks/", t.ID), Body: t}, err
	}).Name("createTask")
	openapi.Serve(app, "/docs", openapi.Config{Title: "Tasks", Version: "1.0.0"})
	return app
}

func main() {
	db, err := sql.Open("sqlite", "tasks.db")
	if err == nil {
		_, err = db.Exec("create table if not exists tasks (id integer primary key, owner text, title text)")
	}
	if err == nil {
		err = newApp(dunlin.Config{Addr: "127.0.0.1:3000"}, db).Run(context.Background())
	}
	if err != nil {
		log.Fatal(err)
	}
}
