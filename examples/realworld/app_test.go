package main

import (
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
)

// A client sends requests as one user.
type client struct {
	t     *testing.T
	http  *http.Client
	token string
}

// ask sends JSON and returns the status and the answer.
func (c client) ask(method, path, body string) (status int, answer map[string]any) {
	c.t.Helper()
	request, err := http.NewRequestWithContext(c.t.Context(), method, "http://example.com/api"+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Token "+c.token)
	}
	response, err := c.http.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &answer); err != nil {
			c.t.Fatalf("%s %s: got %v in %q", method, path, err, text)
		}
	}
	return response.StatusCode, answer
}

// as is the client of a new user.
func (c client) as(username string) client {
	c.t.Helper()
	status, answer := c.ask("POST", "/users", `{"user":{"username":"`+username+`","email":"`+username+`@example.com","password":"password"}}`)
	if status != 201 {
		c.t.Fatalf("register %s: got %d %v", username, status, answer)
	}
	c.token = answer["user"].(map[string]any)["token"].(string)
	return c
}

// publish publishes an article and returns its path.
func (c client) publish(title, tags string) string {
	c.t.Helper()
	status, answer := c.ask("POST", "/articles", `{"article":{"title":"`+title+`","description":"","body":"text","tagList":`+tags+`}}`)
	if status != 201 {
		c.t.Fatalf("publish %q: got %d %v", title, status, answer)
	}
	return "/articles/" + answer["article"].(map[string]any)["slug"].(string)
}

func newClient(t *testing.T) (client, *conduit) {
	app, c := service(t, dunlin.Config{}, sqliteFile(t))
	return client{t: t, http: dunlintest.NewClient(app)}, c
}

// The Location of a new article is a URL, also if its slug has letters that are not ASCII.
func TestLocationOfArticle(t *testing.T) {
	guest, _ := newClient(t)
	ada := guest.as("ada")
	req, _ := http.NewRequest("POST", "https://conduit.example/api/articles", strings.NewReader(`{"article":{"title":"Østersøen","description":"","body":"text"}}`))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Token "+ada.token)
	resp, err := ada.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	location := resp.Header.Get("Location")
	if resp.StatusCode != 201 || !strings.HasPrefix(location, "/api/articles/%C3%B8sters%C3%B8en") {
		t.Fatalf("%d, Location %q", resp.StatusCode, location)
	}
	if status, _ := guest.ask("GET", strings.TrimPrefix(location, "/api"), ""); status != 200 {
		t.Errorf("GET %s: %d", location, status)
	}
}

func TestErrors(t *testing.T) {
	guest, _ := newClient(t)
	ada, bob := guest.as("ada"), guest.as("bob")
	dragons := ada.publish("Dragons", `["b","a","b"]`)
	forged := guest
	forged.token = ada.token[:len(ada.token)-4] + "AAAA"
	_, answer := ada.ask("POST", dragons+"/comments", `{"comment":{"body":"mine"}}`)
	if answer["comment"] == nil {
		t.Fatalf("comment: got %v", answer)
	}
	for _, test := range []struct {
		name               string
		as                 client
		method, path, body string
		status             int
		errors             string // the names in the member errors
	}{
		{"email is taken", guest, "POST", "/users", `{"user":{"username":"eve","email":"ada@example.com","password":"password"}}`, 422, "body"},
		{"two rules are broken", guest, "POST", "/users", `{"user":{"username":"","email":"x","password":"password"}}`, 422, "email username"},
		{"no JSON", guest, "POST", "/users", `{`, 422, "#"},
		{"wrong password", guest, "POST", "/users/login", `{"user":{"email":"ada@example.com","password":"wrong"}}`, 422, "body"},
		{"unknown user logs in", guest, "POST", "/users/login", `{"user":{"email":"eve@example.com","password":"password"}}`, 422, "body"},
		{"password beyond bcrypt", guest, "POST", "/users", `{"user":{"username":"eve","email":"e@example.com","password":"` + strings.Repeat("ü", 72) + `"}}`, 422, "body"},
		{"no login", guest, "GET", "/user", "", 401, "body"},
		{"forged token", forged, "GET", "/user", "", 401, "body"},
		{"forged token where login is optional", forged, "GET", "/articles", "", 401, "body"},
		{"name of another user", bob, "PUT", "/user", `{"user":{"username":"ada"}}`, 422, "body"},
		{"unknown profile", guest, "GET", "/profiles/eve", "", 404, "body"},
		{"unknown profile to follow", bob, "POST", "/profiles/eve/follow", "", 404, "body"},
		{"unknown article", guest, "GET", "/articles/none", "", 404, "body"},
		{"article of another user", bob, "PUT", dragons, `{"article":{"title":"x"}}`, 403, "body"},
		{"delete article of another user", bob, "DELETE", dragons, "", 403, "body"},
		{"delete comment of another user", bob, "DELETE", dragons + "/comments/1", "", 403, "body"},
		{"comment on another article", ada, "DELETE", bob.publish("x", "[]") + "/comments/1", "", 404, "body"},
		{"no route", guest, "GET", "/nothing", "", 404, "body"},
		{"wrong method", guest, "PATCH", "/tags", "", 405, "body"},
		{"a page too large", guest, "GET", "/articles?limit=101", "", 422, "limit"},
	} {
		status, answer := test.as.ask(test.method, test.path, test.body)
		var names []string
		members, _ := answer["errors"].(map[string]any)
		for name := range members {
			names = append(names, name)
		}
		want := strings.Fields(test.errors)
		if status != test.status || len(names) != len(want) {
			t.Errorf("%s: got %d %v, want %d with errors of %v", test.name, status, answer, test.status, want)
		}
		for _, name := range want {
			if members[name] == nil {
				t.Errorf("%s: got no %s in %v", test.name, name, answer)
			}
		}
	}
}

func TestLoginIsOptionalForReaders(t *testing.T) {
	guest, _ := newClient(t)
	ada, bob := guest.as("ada"), guest.as("bob")
	path := ada.publish("Dragons", `["b","a","b"]`)
	bob.ask("POST", "/profiles/ada/follow", "")
	bob.ask("POST", path+"/favorite", "")
	for _, test := range []struct {
		as        client
		following bool
	}{{guest, false}, {ada, false}, {bob, true}} {
		_, answer := test.as.ask("GET", path, "")
		a := answer["article"].(map[string]any)
		if a["author"].(map[string]any)["following"] != test.following || a["favorited"] != test.following || a["favoritesCount"] != 1.0 {
			t.Errorf("got %v, want following and favorited %v", a, test.following)
		}
		if want := []any{"a", "b"}; !reflect.DeepEqual(a["tagList"], want) {
			t.Errorf("tags %v, want %v", a["tagList"], want)
		}
	}
}

func TestUserChanges(t *testing.T) {
	guest, _ := newClient(t)
	ada := guest.as("ada")
	// A client sends back its user, and null deletes a field.
	ada.ask("PUT", "/user", `{"user":{"bio":"hello","image":"x.png"}}`)
	_, answer := ada.ask("PUT", "/user", `{"user":{"email":"ada@example.com","token":"","username":"ada","bio":"hello","image":null,"password":"longer password"}}`)
	if u := answer["user"].(map[string]any); u["bio"] != "hello" || u["image"] != nil {
		t.Errorf("got %v, want a bio and no image", u)
	}
	if status, answer := guest.ask("POST", "/users/login", `{"user":{"email":"ada@example.com","password":"longer password"}}`); status != 200 {
		t.Errorf("login with the new password: got %d %v", status, answer)
	}
}

func TestTransaction(t *testing.T) {
	_, c := newClient(t)
	failure := errors.New("failure")
	for _, test := range []struct {
		name  string
		fails []error // of each run
		runs  int
		err   error
	}{
		{"succeeds", []error{nil}, 1, nil},
		{"conflicts once", []error{&pgconn.PgError{Code: "40001"}, nil}, 2, nil},
		{"fails", []error{failure}, 1, failure},
	} {
		runs := 0
		err := c.transaction(t.Context(), func(tx *sql.Tx) error {
			runs++
			if _, err := tx.Exec("insert into users (username, email, password) values ($1, $1, '')", test.name); err != nil {
				return err
			}
			return test.fails[runs-1]
		})
		var n int
		if err := c.db.QueryRow("select count(*) from users where username = $1", test.name).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if runs != test.runs || !errors.Is(err, test.err) || (n == 1) != (test.err == nil) {
			t.Errorf("%s: got %d runs, %v, %d rows", test.name, runs, err, n)
		}
	}
	conflict := &pgconn.PgError{Code: "40P01"}
	runs := 0
	if err := c.transaction(t.Context(), func(*sql.Tx) error { runs++; return conflict }); !errors.Is(err, conflict) || runs != 3 {
		t.Errorf("permanent conflict: got %d runs, %v", runs, err)
	}
}

func TestHealthWithoutDatabase(t *testing.T) {
	app, c := service(t, dunlin.Config{}, sqliteFile(t))
	for _, want := range []int{200, 503} {
		response, err := dunlintest.NewClient(app).Get("http://example.com/health")
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("status %d, want %d", response.StatusCode, want)
		}
		c.db.Close()
	}
}

func TestDatabaseIsUnavailable(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // connections wait in its backlog
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for _, test := range []struct {
		name, address string
		timeout       time.Duration
		retryAfter    string
	}{
		{"nothing listens", "127.0.0.1:1", 0, "1"},
		{"it does not answer", silent.Addr().String(), 50 * time.Millisecond, ""},
	} {
		db, err := sql.Open("pgx", "postgres://conduit@"+test.address+"/conduit?sslmode=disable")
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		quiet := slog.New(slog.DiscardHandler)
		app := newApp(dunlin.Config{Logger: quiet, Timeouts: dunlin.Timeouts{Action: test.timeout}}, &conduit{db: db, secret: []byte("secret"), log: quiet})
		response, err := dunlintest.NewClient(app).Get("http://example.com/api/tags")
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if got := response.Header.Get("Retry-After"); response.StatusCode != 503 || got != test.retryAfter {
			t.Errorf("%s: status %d, Retry-After %q, want 503, %q", test.name, response.StatusCode, got, test.retryAfter)
		}
	}
}

// article publishes an article of a new user on a running service.
func article(t *testing.T, app *dunlin.App, username, tag string) {
	client{t: t, http: dunlintest.NewClient(app)}.as(username).publish("Dragons", `["`+tag+`"]`)
}
