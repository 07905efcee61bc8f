package pages

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/middleware"
	"github.com/dunlinhttp/dunlin/openapi"
	"github.com/dunlinhttp/dunlin/typed"
)

type User struct {
	ID   string `json:"id"`
	Org  string `json:"org"`
	Name string `json:"name"`
	Mail string `json:"mail,omitempty"`
}

// ChangeUser changes the members that it contains.
type ChangeUser struct {
	ID   string `path:"id"`
	Body struct {
		Name typed.Optional[string] `json:"name,omitzero" minLength:"1" maxLength:"80"`
		Mail typed.Nullable[string] `json:"mail,omitzero" format:"email"`
	}
}

func changeUser(_ *dunlin.Request, in ChangeUser) (User, error) {
	u := User{ID: in.ID, Name: "Ada", Mail: "ada@example.com"}
	u.Name = in.Body.Name.Or(u.Name)
	if mail := in.Body.Mail; mail.Set || mail.Null {
		u.Mail = mail.Value // "" for null
	}
	return u, nil
}

type CreateUser struct {
	Org  string                 `path:"org"`
	Dry  bool                   `query:"dry" default:"false"`
	Key  typed.Optional[string] `header:"Idempotency-Key" maxLength:"64"`
	Body struct {
		Name string                 `json:"name" minLength:"1" maxLength:"80"`
		Mail typed.Nullable[string] `json:"mail,omitzero" format:"email"`
	}
}

var EmailTaken = typed.NewFault(409, "email-taken", "The address is taken")

func createUser(r *dunlin.Request, in CreateUser) (typed.Created[User], error) {
	if taken(in.Body.Mail.Value) {
		return typed.Created[User]{}, EmailTaken
	}
	u := save(in.Org, in.Body.Name)
	return typed.Created[User]{Location: "/users/" + u.ID, Body: u}, nil
}

func taken(mail string) bool { return mail == "ada@example.com" }

var saved int

func save(org, name string) User {
	saved++
	return User{ID: strconv.Itoa(saved), Org: org, Name: name}
}

type Size string

func (Size) Enum() []Size { return []Size{"small", "large"} }

func (p *Period) Validate(c *typed.Checks) {
	c.Check(p.From.Before(p.Until), "#/until", "order", "must be after from")
}

type Period struct {
	_     struct{}  `description:"From is before until"`
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
}

type Rent struct {
	Body struct {
		Size   Size   `json:"size"`
		Period Period `json:"period"`
	}
}

type Notice struct {
	Book int64 `json:"book"`
}

func typedActions(t *testing.T, app *dunlin.App) {
	typed.Post(app, "/orgs/{org}/users", createUser).Name("createUser").Faults(EmailTaken)

	change := typed.Patch(app, "/users/{id}", changeUser)
	var mail, name ChangeUser
	mail.ID, name.ID = "7", "7"
	mail.Body.Mail = typed.Nullable[string]{Null: true}
	name.Body.Name = typed.OptionalOf("Eve")
	asPatch := func(r *http.Request) { r.Header.Set("Content-Type", "application/merge-patch+json") }
	if x := change.Test(t, app, mail, asPatch); x.Out.Name != "Ada" || x.Out.Mail != "" {
		t.Errorf("got %d %s", x.Status, x.Body)
	}
	if x := change.Test(t, app, name); x.Out.Name != "Eve" || x.Out.Mail != "ada@example.com" {
		t.Errorf("got %d %s", x.Status, x.Body)
	}

	rent := typed.Post(app, "/rents", func(_ *dunlin.Request, in Rent) (Size, error) { return in.Body.Size, nil })
	var small Rent
	small.Body.Size, small.Body.Period.Until = "small", time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if x := rent.Test(t, app, small); x.Out != "small" {
		t.Errorf("got %d %s", x.Status, x.Body)
	}
	small.Body.Period.From = small.Body.Period.Until
	if x := rent.Test(t, app, small); x.Status != 400 {
		t.Errorf("got %d %s", x.Status, x.Body)
	}

	type shown struct {
		ETag string `header:"ETag"`
		Body User
	}
	unchanged := typed.Declares(middleware.ETag(), typed.Status{Code: 304, Description: "It has not changed"})
	show := typed.Get(app, "/users/ada", func(*dunlin.Request, struct{}) (shown, error) { return shown{ETag: `"1"`}, nil }, unchanged)
	if x := show.Test(t, app, struct{}{}, func(r *http.Request) { r.Header.Set("If-None-Match", `W/"1"`) }); x.Status != 304 {
		t.Errorf("got %d %s", x.Status, x.Body)
	}
	if x := show.Test(t, app, struct{}{}); x.Status != 200 || x.Out.ETag != `"1"` {
		t.Errorf("got %d %s", x.Status, x.Body)
	}

	authenticate := func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			if r.Header("Authorization") != "Bearer x" {
				return dunlin.Error(typed.Unauthorized)
			}
			return next(r)
		}
	}
	api := app.Group("/api", typed.Declares(authenticate, typed.Requires(typed.BearerAuth("bearer", "JWT")), typed.Unauthorized))

	op := typed.Post(api, "/orgs/{org}/users", createUser).Faults(EmailTaken)
	in := CreateUser{Org: "acme"}
	in.Body.Name, in.Body.Mail = "Ada", typed.NullableOf("ada@example.com")
	x := op.Test(t, app, in, func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") })
	if !errors.Is(x.Problem, EmailTaken) {
		t.Errorf("got %d %s", x.Status, x.Body)
	}
	if x := op.Test(t, app, in); !errors.Is(x.Problem, typed.Unauthorized) {
		t.Errorf("without a token: got %d %s", x.Status, x.Body)
	}

	typed.Get(app, "/news", func(*dunlin.Request, struct{}) (typed.EventsOf[Notice], error) {
		return func(e *typed.Emitter[Notice]) error { return e.Emit(Notice{7}) }, nil
	})
	client := &typed.Client{Base: "https://shop.example", HTTP: dunlintest.NewClient(app)}
	if notices, err := follow(t.Context(), client); err != nil || len(notices) != 1 || notices[0].Book != 7 {
		t.Errorf("followed %v, %v", notices, err)
	}
	in.Body.Mail = typed.Nullable[string]{Null: true}
	if user, err := call(t.Context(), client, in); err != nil || user.Body.Name != "Ada" {
		t.Errorf("called: got %v, %v", user, err)
	}
	if err := serveDocument(app); err != nil {
		t.Error(err)
	}
}

func serveDocument(app *dunlin.App) error {
	config := openapi.Config{Title: "Users", Version: "1.4.0"}
	openapi.Serve(app, "/docs", config) // a page, and openapi.json

	// For "dunlin openapi write":
	if err := openapi.Export(app, config); err != nil {
		return err
	}
	return nil
}

func call(ctx context.Context, client *typed.Client, in CreateUser) (typed.Created[User], error) {
	var createUser = typed.NewEndpoint[CreateUser, typed.Created[User]]("POST", "/orgs/{org}/users")

	user, err := createUser.Call(ctx, client, in)
	if errors.Is(err, EmailTaken) {
		return user, errors.New("somebody has this address already")
	}
	return user, err
}

var watchStock = typed.NewEndpoint[struct{}, typed.EventsOf[Notice]]("GET", "/news")

func follow(ctx context.Context, client *typed.Client) (notices []Notice, err error) {
	for notice, err := range typed.Follow[Notice](ctx, client, watchStock, struct{}{}) {
		if err != nil {
			return notices, err // the stream was cut
		}
		notices = append(notices, notice)
	}
	return notices, nil
}

func twoWaysIn(t *testing.T, app *dunlin.App) {
	byToken := middleware.KeyAuth(middleware.KeyAuthConfig{Check: middleware.Keys(map[string]string{"billing": "a key of 16 bytes or more"})})
	bySession := func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			if r.Cookie("__Host-session") != "ada" {
				return dunlin.Error(typed.Unauthorized)
			}
			return next(r)
		}
	}

	either := func(next dunlin.Action) dunlin.Action {
		ofProgram, ofPerson := byToken(next), bySession(next)
		return func(r *dunlin.Request) dunlin.Response {
			if r.Header("Authorization") != "" {
				return ofProgram(r)
			}
			return ofPerson(r)
		}
	}
	token := typed.Requires(typed.BearerAuth("token", "JWT"))
	session := typed.Requires(typed.APIKey("session", "cookie", "__Host-session"))
	api := app.Group("/api", typed.Declares(either, token.Or(session), typed.Unauthorized))

	op := typed.Get(api, "/news", func(*dunlin.Request, struct{}) (typed.None, error) { return typed.None{}, nil })
	for _, c := range []struct {
		name, value string
		status      int
	}{
		{"Authorization", "Bearer a key of 16 bytes or more", 204},
		{"Authorization", "Bearer another key of 16 bytes", 401},
		{"Cookie", "__Host-session=ada", 204},
		{"Cookie", "__Host-session=eve", 401},
		{"Accept", "*/*", 401},
	} {
		req, _ := http.NewRequest("GET", "https://shop.example/api/news", nil)
		req.Header.Set(c.name, c.value)
		resp, err := dunlintest.NewClient(app).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != c.status {
			t.Errorf("%s: %s: got %d", c.name, c.value, resp.StatusCode)
		}
	}
	op.Test(t, app, struct{}{}, func(r *http.Request) { r.Header.Set("Cookie", "__Host-session=ada") })
}
