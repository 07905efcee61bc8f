package main

import (
	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/typed"
)

// Comment is a comment on an article.
type Comment struct {
	ID        int64   `json:"id"`
	CreatedAt string  `json:"createdAt" format:"date-time"`
	UpdatedAt string  `json:"updatedAt" format:"date-time"`
	Body      string  `json:"body"`
	Author    Profile `json:"author"`
}

// CommentBody is the body of answers with a comment.
type CommentBody struct {
	Comment Comment `json:"comment"`
}

// CommentsBody has the comments on an article.
type CommentsBody struct {
	Comments []Comment `json:"comments"`
}

// AddComment is the request that adds a comment to an article.
type AddComment struct {
	BySlug
	Body struct {
		Comment struct {
			Body string `json:"body" minLength:"1" maxLength:"10000"`
		} `json:"comment"`
	}
}

// ByComment selects a comment.
type ByComment struct {
	BySlug
	ID int64 `path:"id"`
}

// TagsBody has all tags.
type TagsBody struct {
	Tags []string `json:"tags"`
}

// commentQuery reads comments c by authors u for the user $1.
const commentQuery = `select c.id, c.created, c.updated, c.body, u.username, u.bio, u.image,
		exists (select 1 from follows where follower = $1 and followed = u.id)
	from comments c join users u on u.id = c.author where `

func scanComment(from row) (c Comment, err error) {
	a := &c.Author
	err = from.Scan(&c.ID, &c.CreatedAt, &c.UpdatedAt, &c.Body, &a.Username, &a.Bio, &a.Image, &a.Following)
	return c, err
}

func (c *conduit) comments(r *dunlin.Request, in BySlug) (body CommentsBody, err error) {
	a, err := findArticle(r.Context(), c.db, userOf(r), in.Slug)
	if err != nil {
		return body, err
	}
	body.Comments, err = all(r.Context(), c.db, scanComment, commentQuery+"c.article = $2 order by c.id desc", userOf(r), a.id)
	return body, err
}

func (c *conduit) addComment(r *dunlin.Request, in AddComment) (created typed.Created[CommentBody], err error) {
	var id int64
	err = c.db.QueryRowContext(r.Context(), `insert into comments (article, author, body, created, updated)
		select id, $1, $2, $3, $3 from articles where slug = $4 returning id`, userOf(r), in.Body.Comment.Body, timestamp(), in.Slug).Scan(&id)
	if err != nil {
		return created, notFoundAs(err, noArticle)
	}
	created.Body.Comment, err = scanComment(c.db.QueryRowContext(r.Context(), commentQuery+"c.id = $2", userOf(r), id))
	return created, err
}

func (c *conduit) deleteComment(r *dunlin.Request, in ByComment) (typed.None, error) {
	var author int64
	err := c.db.QueryRowContext(r.Context(), "select c.author from comments c join articles a on a.id = c.article where c.id = $1 and a.slug = $2",
		in.ID, in.Slug).Scan(&author)
	switch {
	case err != nil:
		return typed.None{}, notFoundAs(err, noComment)
	case author != userOf(r):
		return typed.None{}, notYours
	}
	_, err = c.db.ExecContext(r.Context(), "delete from comments where id = $1", in.ID)
	return typed.None{}, err
}

func (c *conduit) tags(r *dunlin.Request, _ struct{}) (body TagsBody, err error) {
	scan := func(from row) (tag string, err error) {
		err = from.Scan(&tag)
		return tag, err
	}
	body.Tags, err = all(r.Context(), c.db, scan, "select tag from tags group by tag order by count(*) desc, tag limit 50")
	return body, err
}
