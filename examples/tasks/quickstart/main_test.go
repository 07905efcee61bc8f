package main

import (
	"database/sql"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/typed"
)

func TestCreate(t *testing.T) {
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "tasks.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("create table tasks (id integer primary key, owner text, title text)"); err != nil {
		t.Fatal(err)
	}
	app := newApp(dunlin.Config{Logger: slog.New(slog.DiscardHandler)}, db)
	ada := func(r *http.Request) { r.SetBasicAuth("ada", "correct horse") }
	for _, c := range []struct {
		title string
		edit  []func(*http.Request)
		want  int
	}{
		{"Buy tea", []func(*http.Request){ada}, 201},
		{"", []func(*http.Request){ada}, 400},
		{"Buy tea", nil, 401},
	} {
		if got := dunlintest.JSON(t, app, "POST", "/tasks", map[string]string{"title": c.title}, nil, c.edit...); got != c.want {
			t.Errorf("%q: got %d, want %d", c.title, got, c.want)
		}
	}
	create := typed.Find[CreateTask, typed.Created[Task]](app, "createTask")
	i := slices.IndexFunc(create.Answers(), func(a typed.Answer) bool { return a.Status == 401 })
	if documented := create.Answers()[i]; len(documented.Faults) > 0 || !documented.Other {
		t.Errorf("the document has a fault that the middleware does not send: %+v", documented)
	}
	if got := create.Test(t, app, CreateTask{}); got.Status != 401 || got.Problem.Type != "" {
		t.Errorf("without login: got %d %s", got.Status, got.Body)
	}
	var owner string
	if err := db.QueryRow("select owner from tasks").Scan(&owner); err != nil || owner != "ada" {
		t.Errorf("got %q, %v", owner, err)
	}
}
