package idioms

import (
	"context"
	"fmt"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/typed"
)

// Dunlin returns the service on Dunlin.
func Dunlin(config dunlin.Config) *dunlin.App {
	app := dunlin.New(config)

	app.Get("/users/{id:int}", func(r *dunlin.Request) dunlin.Response {
		id, err := dunlin.Param[int](r, "id")
		if err != nil {
			return dunlin.Error(err)
		}
		u, ok := findUser(id)
		if !ok {
			return dunlin.NotFound()
		}
		return dunlin.JSON(u)
	})

	admin := app.Group("/admin", dunlinKey)
	typed.Post(admin, "/users", dunlinCreate)
	admin.Get("/me", func(r *dunlin.Request) dunlin.Response {
		name, _ := dunlinUser.Get(r)
		return dunlin.Text(name)
	})
	return app
}

// CreateUser describes the input and its rules.
type CreateUser struct {
	Body struct {
		Name string `json:"name" minLength:"1"`
	}
}

func dunlinCreate(_ *dunlin.Request, in CreateUser) (typed.Created[User], error) {
	u := addUser(in.Body.Name)
	return typed.Created[User]{Location: fmt.Sprintf("/users/%d", u.ID), Body: u}, nil
}

// dunlinUser is the key of the user's name in a request. dunlinKey sets it.
var dunlinUser = dunlin.NewKey[string]("user")

func dunlinKey(next dunlin.Action) dunlin.Action {
	return func(r *dunlin.Request) dunlin.Response {
		name := ownerOf(r.Header("X-Key"))
		if name == "" {
			return dunlin.Problem(&dunlin.ProblemDetails{Status: 401})
		}
		dunlinUser.Set(r, name)
		return next(r).Header("X-Served-For", name)
	}
}

// ServeDunlin serves until it receives a signal, and then waits for running requests.
func ServeDunlin() error {
	return Dunlin(dunlin.Config{Addr: ":8080"}).Run(context.Background())
}
