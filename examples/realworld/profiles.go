package main

import (
	"github.com/dunlinhttp/dunlin"
)

// Profile is the public data of a user.
type Profile struct {
	Username  string  `json:"username"`
	Bio       *string `json:"bio"`
	Image     *string `json:"image"`
	Following bool    `json:"following" description:"whether the current user follows this one"`
}

// ProfileBody is the body of answers with a profile.
type ProfileBody struct {
	Profile Profile `json:"profile"`
}

// ByUsername selects a user.
type ByUsername struct {
	Username string `path:"username"`
}

func (c *conduit) profile(r *dunlin.Request, in ByUsername) (body ProfileBody, err error) {
	p := &body.Profile
	err = c.db.QueryRowContext(r.Context(), `select username, bio, image, exists (select 1 from follows where follower = $1 and followed = users.id)
		from users where username = $2`, userOf(r), in.Username).Scan(&p.Username, &p.Bio, &p.Image, &p.Following)
	return body, notFoundAs(err, noUser)
}

func (c *conduit) follow(r *dunlin.Request, in ByUsername) (ProfileBody, error) {
	return c.changeFollow(r, in, `insert into follows (follower, followed) select $1, id from users where username = $2 on conflict do nothing`)
}

func (c *conduit) unfollow(r *dunlin.Request, in ByUsername) (ProfileBody, error) {
	return c.changeFollow(r, in, `delete from follows where follower = $1 and followed = (select id from users where username = $2)`)
}

func (c *conduit) changeFollow(r *dunlin.Request, in ByUsername, statement string) (ProfileBody, error) {
	if _, err := c.db.ExecContext(r.Context(), statement, userOf(r), in.Username); err != nil {
		return ProfileBody{}, err
	}
	return c.profile(r, in)
}
