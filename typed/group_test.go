package typed_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/typed"
)

var (
	noNote    = typed.NewFault(404, "no-note", "There is no such note")
	notAuthor = typed.NewFault(403, "not-the-author", "Only the author may do this")
)

func TestGroup(t *testing.T) {
	app := quiet()
	type id struct {
		ID int `path:"id"`
	}
	act := func(_ *dunlin.Request, in id) (typed.None, error) {
		if in.ID == 0 {
			return typed.None{}, noNote
		}
		return typed.None{}, nil
	}
	token, key := typed.Requires(typed.BearerAuth("token", "JWT")), typed.Requires(typed.APIKey("key", "header", "X-Key"))
	notes := typed.NewGroup(app.Group("/notes")).Tags("notes").Security(token).Faults(noNote)
	show := typed.Get(notes, "/{id}", act)
	inner := typed.NewGroup(notes).Tags("old").Returns(http.StatusNotModified, nil).Returns(http.StatusOK, "").ReturnsBytes(http.StatusPartialContent, "image/*").Deprecated().Hidden()
	remove := typed.Delete(inner, "/{id}", act).Tags("own").Faults(notAuthor).Security(key)
	notes.Tags("late")
	last := typed.Put(notes, "/{id}", act)
	notes.Handle("POST", "/{id}", func(*dunlin.Request) dunlin.Response { return dunlin.NoContent() })

	statuses := func(answers []typed.Answer) (list []int) {
		for _, a := range answers {
			list = append(list, a.Status)
		}
		return list
	}
	for _, c := range []struct {
		about      typed.Description
		tags       string
		security   int
		statuses   []int
		deprecated bool
	}{
		{show.Describe(), "[notes]", 1, []int{401, 404}, false},
		{remove.Describe(), "[notes old own]", 2, []int{200, 206, 304, 401, 403, 404}, true},
		{last.Describe(), "[notes late]", 1, []int{401, 404}, false},
	} {
		has := statuses(c.about.Answers)
		missing := slices.DeleteFunc(slices.Clone(c.statuses), func(s int) bool { return slices.Contains(has, s) })
		if fmt.Sprint(c.about.Tags) != c.tags || len(c.about.Security) != c.security || len(missing) > 0 ||
			c.about.Deprecated != c.deprecated || c.about.Hidden != c.deprecated || slices.Contains(has, 304) != c.deprecated {
			t.Errorf("%s %s: got tags %v, %d requirements, statuses %v, deprecated %v", c.about.Route.Methods, c.about.Route.Pattern,
				c.about.Tags, len(c.about.Security), has, c.about.Deprecated)
		}
	}
	if x := show.Test(t, app, id{0}); x.Status != 404 { // a fault of the group is declared
		t.Errorf("got %d %s", x.Status, x.Body)
	}
	for want, f := range map[string]func(){
		"router is nil":     func() { typed.NewGroup(nil) },
		"fault 0":           func() { typed.NewGroup(app).Faults(nil) },
		"between 200":       func() { typed.NewGroup(app).Returns(100, nil) },
		"is called":         func() { typed.NewGroup(app).Returns(200, make(chan int)) },
		"no typed operatio": func() { typed.Find[id, typed.None](app, "POST /notes/{id}") },
	} {
		if got := panics(f); !strings.Contains(got, want) && want != "is called" || got == "" {
			t.Errorf("got panic %q, want it to contain %q", got, want)
		}
	}
}

// An operation from Find is tested with the middleware of its registration.
func TestFind(t *testing.T) {
	type in struct {
		Name string `query:"name"`
	}
	signedIn := func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			if r.Header("Authorization") == "" {
				return dunlin.Error(typed.Unauthorized)
			}
			return next(r)
		}
	}
	app := quiet()
	api := app.Group("/api", typed.Declares(signedIn, typed.Unauthorized))
	typed.Get(api, "/hello", func(_ *dunlin.Request, in in) (string, error) { return "hello " + in.Name, nil }).Name("greet")
	for _, name := range []string{"greet", "GET /api/hello"} {
		op := typed.Find[in, string](app, name)
		if x := op.Test(t, app, in{"Ada"}); x.Status != http.StatusUnauthorized {
			t.Errorf("%s: got %d %s", name, x.Status, x.Body)
		}
		x := op.Test(t, app, in{"Ada"}, func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") })
		if x.Status != http.StatusOK || x.Out != "hello Ada" {
			t.Errorf("%s: got %d %s", name, x.Status, x.Body)
		}
	}
	if got := panics(func() { typed.Find[in, int](app, "greet") }); !strings.Contains(got, "not a") {
		t.Errorf("other types: got panic %q", got)
	}
	if got := panics(func() { typed.Find[in, string](app, "gret") }); !strings.Contains(got, `no typed operation of that name`) {
		t.Errorf("unknown name: got panic %q", got)
	}
}
