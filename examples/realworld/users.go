package main

import (
	"context"
	"errors"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/typed"
)

// User is the current user, with its private data.
type User struct {
	Email    string  `json:"email"`
	Token    string  `json:"token"`
	Username string  `json:"username"`
	Bio      *string `json:"bio"`
	Image    *string `json:"image"`

	id       int64
	password string
}

// UserBody is the body of answers with a user.
type UserBody struct {
	User User `json:"user"`
}

// Register creates a user.
type Register struct {
	Body struct {
		User struct {
			Username string `json:"username" minLength:"1" maxLength:"50"`
			Email    string `json:"email" format:"email" maxLength:"254"`
			Password string `json:"password" minLength:"8" maxLength:"72"`
		} `json:"user"`
	}
}

// LogIn is a login.
type LogIn struct {
	Body struct {
		User struct {
			Email    string `json:"email"`
			Password string `json:"password"`
		} `json:"user"`
	}
}

// UpdateUser changes the members that the request contains. Clients may send back a whole User.
type UpdateUser struct {
	Body struct {
		User struct {
			Email    typed.Optional[string] `json:"email,omitzero" format:"email" maxLength:"254"`
			Username typed.Optional[string] `json:"username,omitzero" minLength:"1" maxLength:"50"`
			Password typed.Optional[string] `json:"password,omitzero" minLength:"8" maxLength:"72"`
			Bio      typed.Nullable[string] `json:"bio,omitzero" maxLength:"10000"`
			Image    typed.Nullable[string] `json:"image,omitzero" maxLength:"2000"`
			Token    typed.Optional[string] `json:"token,omitzero"` // has no effect
		} `json:"user"`
	}
}

func (c *conduit) register(r *dunlin.Request, in Register) (typed.Created[UserBody], error) {
	u := User{Username: in.Body.User.Username, Email: in.Body.User.Email}
	password, err := hash(in.Body.User.Password)
	if err != nil {
		return typed.Created[UserBody]{}, err
	}
	err = c.db.QueryRowContext(r.Context(), "insert into users (username, email, password) values ($1, $2, $3) on conflict do nothing returning id",
		u.Username, u.Email, password).Scan(&u.id)
	if err != nil {
		return typed.Created[UserBody]{}, notFoundAs(err, taken)
	}
	body, err := c.withToken(u)
	return typed.Created[UserBody]{Body: body}, err
}

func (c *conduit) logIn(r *dunlin.Request, in LogIn) (UserBody, error) {
	u, err := findUser(r.Context(), c.db, "email = $1", in.Body.User.Email)
	if errors.Is(err, noUser) {
		u.password = noPassword
	} else if err != nil {
		return UserBody{}, err
	}
	if !matches(u.password, in.Body.User.Password) || u.id == 0 {
		return UserBody{}, wrongLogin
	}
	return c.withToken(u)
}

func (c *conduit) currentUser(r *dunlin.Request, _ struct{}) (UserBody, error) {
	u, err := findUser(r.Context(), c.db, "id = $1", userOf(r))
	if err != nil {
		return UserBody{}, err
	}
	return c.withToken(u)
}

func (c *conduit) updateUser(r *dunlin.Request, in UpdateUser) (UserBody, error) {
	change := in.Body.User
	u, err := findUser(r.Context(), c.db, "id = $1", userOf(r))
	if err != nil {
		return UserBody{}, err
	}
	u.Email, u.Username = change.Email.Or(u.Email), change.Username.Or(u.Username)
	u.Bio, u.Image = changed(u.Bio, change.Bio), changed(u.Image, change.Image)
	if password, set := change.Password.Get(); set {
		if u.password, err = hash(password); err != nil {
			return UserBody{}, err
		}
	}
	done, err := c.db.ExecContext(r.Context(), `update users set email = $1, username = $2, password = $3, bio = $4, image = $5 where id = $6
		and not exists (select 1 from users where (email = $1 or username = $2) and id <> $6)`, u.Email, u.Username, u.password, u.Bio, u.Image, u.id)
	if err != nil {
		return UserBody{}, err
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return UserBody{}, errors.Join(err, taken)
	}
	return c.withToken(u)
}

// changed returns the value after a change: null deletes it, and absence keeps it.
func changed(old *string, change typed.Nullable[string]) *string {
	if v, set := change.Get(); set {
		return &v
	}
	if change.Null {
		return nil
	}
	return old
}

func (c *conduit) withToken(u User) (UserBody, error) {
	var err error
	u.Token, err = c.sign(u.id)
	return UserBody{u}, err
}

func findUser(ctx context.Context, db querier, where string, arg any) (u User, err error) {
	err = db.QueryRowContext(ctx, "select id, username, email, password, bio, image from users where "+where, arg).
		Scan(&u.id, &u.Username, &u.Email, &u.password, &u.Bio, &u.Image)
	return u, notFoundAs(err, noUser)
}
