package main

import (
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/internal/pgtest"
	"github.com/dunlinhttp/dunlin/middleware"
	"github.com/dunlinhttp/dunlin/typed"
)

func TestService(t *testing.T) {
	app := newTest(t, pgtest.Start(t))
	t.Run("tasks", func(t *testing.T) { testTasks(t, app) })
	t.Run("pages", func(t *testing.T) { testPages(t, app) })
	t.Run("login", func(t *testing.T) { testLogin(t, app) })
}

// newTest returns the app on an empty database.
func newTest(t *testing.T, url string) *dunlin.App {
	db, err := open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	s := newService(db, middleware.NewKeyRing([]byte("a secret of the tests")), true)
	s.rounds = 1
	return newApp(dunlin.Config{Logger: slog.New(slog.DiscardHandler)}, s)
}

// logIn registers a user and returns a function that adds the session to a request.
func logIn(t *testing.T, app *dunlin.App, name string) func(*http.Request) {
	var in Login
	in.Body.Name, in.Body.Password = name, "correct horse battery"
	if got := typed.Find[Login, typed.None](app, "register").Test(t, app, in); got.Status != 204 {
		t.Fatalf("register: got %d %s", got.Status, got.Body)
	}
	got := typed.Find[Login, typed.None](app, "logIn").Test(t, app, in)
	cookies := (&http.Response{Header: got.Header}).Cookies()
	if len(cookies) != 1 {
		t.Fatalf("log in: got %d %s", got.Status, got.Body)
	}
	return func(r *http.Request) { r.AddCookie(cookies[0]) }
}

func testTasks(t *testing.T, app *dunlin.App) {
	ada, eve := logIn(t, app, "ada"), logIn(t, app, "eve")

	create := typed.Find[CreateTask, typed.Created[Task]](app, "createTask")
	var in CreateTask
	in.Body.Title, in.Body.Due = "Buy tea", time.Date(2027, 1, 2, 15, 0, 0, 0, time.UTC)
	made := create.Test(t, app, in, ada)
	if made.Status != 201 || made.Header.Get("Location") != "/tasks/1" {
		t.Fatalf("got %d %s", made.Status, made.Body)
	}
	if got := create.Test(t, app, in); got.Status != 401 {
		t.Errorf("without login: got %d", got.Status)
	}
	in.Body.Title = ""
	if got := create.Test(t, app, in, ada); got.Status != 400 {
		t.Errorf("without a title: got %d %s", got.Status, got.Body)
	}

	var task Task
	if status := dunlintest.JSON(t, app, "GET", "/tasks/1", nil, &task, ada); status != 200 || task.Title != "Buy tea" {
		t.Errorf("got %d %v", status, task)
	}
	if status := dunlintest.JSON(t, app, "GET", "/tasks/1", nil, nil, eve); status != 404 {
		t.Errorf("task of another user: got %d", status)
	}
	task.Done = true
	change := map[string]any{"title": task.Title, "due": task.Due, "done": true}
	if status := dunlintest.JSON(t, app, "PUT", "/tasks/1", change, &task, ada); status != 200 || !task.Done {
		t.Errorf("got %d %v", status, task)
	}
	if status := dunlintest.JSON(t, app, "DELETE", "/tasks/1", nil, nil, ada); status != 204 {
		t.Errorf("remove: got %d", status)
	}
	if status := dunlintest.JSON(t, app, "DELETE", "/tasks/1", nil, nil, ada); status != 404 {
		t.Errorf("second remove: got %d", status)
	}
}

func testPages(t *testing.T, app *dunlin.App) {
	grace := logIn(t, app, "grace")
	for _, title := range []string{"a", "b", "c"} {
		in := map[string]any{"title": title, "due": "2027-01-02T15:00:00Z"}
		if status := dunlintest.JSON(t, app, "POST", "/tasks", in, nil, grace); status != 201 {
			t.Fatalf("got %d", status)
		}
	}
	list := typed.Find[ListTasks, typed.Page[Task]](app, "listTasks")
	var in ListTasks
	in.Limit = 2
	first := list.Test(t, app, in, grace)
	in.Cursor = first.Out.Next
	second := list.Test(t, app, in, grace)
	if len(first.Out.Items) != 2 || len(second.Out.Items) != 1 || second.Out.Next != "" {
		t.Errorf("%s\n%s", first.Body, second.Body)
	}
}

func testLogin(t *testing.T, app *dunlin.App) {
	logIn(t, app, "linus")
	for name, password := range map[string]string{"linus": "another password", "bob": "correct horse battery"} {
		login := map[string]string{"name": name, "password": password}
		if status := dunlintest.JSON(t, app, "POST", "/login", login, nil); status != 401 {
			t.Errorf("%s: got %d", name, status)
		}
	}
	login := map[string]string{"name": "linus", "password": "correct horse battery"}
	if status := dunlintest.JSON(t, app, "POST", "/users", login, nil); status != 409 {
		t.Errorf("used name: got %d", status)
	}
}
