package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/typed"
)

// Article is an article as the current user sees it.
type Article struct {
	Slug           string   `json:"slug"`
	Title          string   `json:"title"`
	Description    string   `json:"description"`
	Body           string   `json:"body"`
	TagList        []string `json:"tagList" description:"in alphabetical order"`
	CreatedAt      string   `json:"createdAt" format:"date-time"`
	UpdatedAt      string   `json:"updatedAt" format:"date-time"`
	Favorited      bool     `json:"favorited"`
	FavoritesCount int64    `json:"favoritesCount"`
	Author         Profile  `json:"author"`

	id, author int64
}

// ArticleBody is the body of answers with an article.
type ArticleBody struct {
	Article Article `json:"article"`
}

// ArticlesBody is a page of articles.
type ArticlesBody struct {
	Articles      []Article `json:"articles"`
	ArticlesCount int64     `json:"articlesCount" description:"total number of matching articles, on all pages"`
}

// Page selects a part of a list.
type Page struct {
	Limit  int `query:"limit" default:"20" minimum:"1" maximum:"100"`
	Offset int `query:"offset" default:"0" minimum:"0"`
}

// ListArticles selects articles, the newest first.
type ListArticles struct {
	Page
	Tag       string `query:"tag" default:""`
	Author    string `query:"author" default:""`
	Favorited string `query:"favorited" default:"" description:"username; lists only articles that this user has marked as favorite"`
}

// BySlug selects an article.
type BySlug struct {
	Slug string `path:"slug"`
}

// CreateArticle publishes an article.
type CreateArticle struct {
	Body struct {
		Article struct {
			Title       string   `json:"title" minLength:"1" maxLength:"200"`
			Description string   `json:"description" maxLength:"1000"`
			Body        string   `json:"body" maxLength:"100000"`
			TagList     []string `json:"tagList,omitzero" maxItems:"20" items.minLength:"1" items.maxLength:"50"`
		} `json:"article"`
	}
}

// UpdateArticle changes the fields that are set in the request.
type UpdateArticle struct {
	BySlug
	Body struct {
		Article struct {
			Title       typed.Optional[string]   `json:"title,omitzero" minLength:"1" maxLength:"200"`
			Description typed.Optional[string]   `json:"description,omitzero" maxLength:"1000"`
			Body        typed.Optional[string]   `json:"body,omitzero" maxLength:"100000"`
			TagList     typed.Optional[[]string] `json:"tagList,omitzero" maxItems:"20" items.minLength:"1" items.maxLength:"50"`
		} `json:"article"`
	}
}

func (c *conduit) articles(r *dunlin.Request, in ListArticles) (ArticlesBody, error) {
	return c.list(r, in, false)
}

func (c *conduit) feed(r *dunlin.Request, in Page) (ArticlesBody, error) {
	return c.list(r, ListArticles{Page: in}, true)
}

// selected is the SQL condition of a list. $1 is the current user. If $5 is true, only articles by followed authors are listed.
const selected = `($2 = '' or a.id in (select article from tags where tag = $2)) and ($3 = '' or u.username = $3)
	and ($4 = '' or a.id in (select f.article from favorites f join users on users.id = f.reader where users.username = $4))
	and (not $5 or a.author in (select followed from follows where follower = $1))`

func (c *conduit) list(r *dunlin.Request, in ListArticles, following bool) (body ArticlesBody, err error) {
	args := []any{userOf(r), in.Tag, in.Author, in.Favorited, following}
	body.Articles, err = all(r.Context(), c.db, scanArticle, articleQuery+selected+" order by a.id desc limit $6 offset $7", append(args, in.Limit, in.Offset)...)
	if err != nil {
		return body, err
	}
	err = c.db.QueryRowContext(r.Context(), "select count(*) from articles a join users u on u.id = a.author where "+selected, args...).Scan(&body.ArticlesCount)
	return body, err
}

func (c *conduit) article(r *dunlin.Request, in BySlug) (ArticleBody, error) {
	a, err := findArticle(r.Context(), c.db, userOf(r), in.Slug)
	return ArticleBody{a}, err
}

func (c *conduit) createArticle(r *dunlin.Request, in CreateArticle) (created typed.Created[ArticleBody], err error) {
	a, now := in.Body.Article, timestamp()
	slug := slugOf(a.Title)
	err = c.transaction(r.Context(), func(tx *sql.Tx) error {
		var id int64
		err := tx.QueryRowContext(r.Context(), `insert into articles (slug, title, description, body, created, updated, author)
			values ($1, $2, $3, $4, $5, $5, $6) returning id`, slug, a.Title, a.Description, a.Body, now, userOf(r)).Scan(&id)
		if err != nil {
			return err
		}
		if err := setTags(r.Context(), tx, id, a.TagList); err != nil {
			return err
		}
		created.Location = "/api/articles/" + url.PathEscape(slug)
		created.Body.Article, err = findArticle(r.Context(), tx, userOf(r), slug)
		return err
	})
	return created, err
}

func (c *conduit) updateArticle(r *dunlin.Request, in UpdateArticle) (body ArticleBody, err error) {
	change := in.Body.Article
	err = c.transaction(r.Context(), func(tx *sql.Tx) error {
		a, err := ownArticle(r.Context(), tx, userOf(r), in.Slug)
		if err != nil {
			return err
		}
		if title := change.Title.Or(a.Title); title != a.Title {
			a.Title, a.Slug = title, slugOf(title)
		}
		_, err = tx.ExecContext(r.Context(), "update articles set slug = $1, title = $2, description = $3, body = $4, updated = $5 where id = $6",
			a.Slug, a.Title, change.Description.Or(a.Description), change.Body.Or(a.Body), timestamp(), a.id)
		if err != nil {
			return err
		}
		if tags, set := change.TagList.Get(); set {
			if err := setTags(r.Context(), tx, a.id, tags); err != nil {
				return err
			}
		}
		body.Article, err = findArticle(r.Context(), tx, userOf(r), a.Slug)
		return err
	})
	return body, err
}

func (c *conduit) deleteArticle(r *dunlin.Request, in BySlug) (typed.None, error) {
	return typed.None{}, c.transaction(r.Context(), func(tx *sql.Tx) error {
		a, err := ownArticle(r.Context(), tx, userOf(r), in.Slug)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(r.Context(), "delete from articles where id = $1", a.id)
		return err
	})
}

func (c *conduit) favorite(r *dunlin.Request, in BySlug) (ArticleBody, error) {
	return c.changeFavorite(r, in, "insert into favorites (reader, article) select $1, id from articles where slug = $2 on conflict do nothing")
}

func (c *conduit) unfavorite(r *dunlin.Request, in BySlug) (ArticleBody, error) {
	return c.changeFavorite(r, in, "delete from favorites where reader = $1 and article = (select id from articles where slug = $2)")
}

func (c *conduit) changeFavorite(r *dunlin.Request, in BySlug, statement string) (ArticleBody, error) {
	if _, err := c.db.ExecContext(r.Context(), statement, userOf(r), in.Slug); err != nil {
		return ArticleBody{}, err
	}
	return c.article(r, in)
}

// articleQuery reads articles a by authors u for the user $1.
const articleQuery = `select a.id, a.slug, a.title, a.description, a.body, a.created, a.updated, a.author, u.username, u.bio, u.image,
		exists (select 1 from follows where follower = $1 and followed = u.id),
		exists (select 1 from favorites where reader = $1 and article = a.id),
		(select count(*) from favorites where article = a.id),
		coalesce((select string_agg(tag, '
' order by tag) from tags where article = a.id), '')
	from articles a join users u on u.id = a.author where `

func scanArticle(from row) (a Article, err error) {
	var tags string
	err = from.Scan(&a.id, &a.Slug, &a.Title, &a.Description, &a.Body, &a.CreatedAt, &a.UpdatedAt, &a.author,
		&a.Author.Username, &a.Author.Bio, &a.Author.Image, &a.Author.Following, &a.Favorited, &a.FavoritesCount, &tags)
	a.TagList = strings.FieldsFunc(tags, func(c rune) bool { return c == '\n' })
	slices.Sort(a.TagList) // the databases may sort in the order of a locale
	return a, err
}

func findArticle(ctx context.Context, db querier, user int64, slug string) (Article, error) {
	a, err := scanArticle(db.QueryRowContext(ctx, articleQuery+"a.slug = $2", user, slug))
	return a, notFoundAs(err, noArticle)
}

// ownArticle finds an article that the user may change.
func ownArticle(ctx context.Context, db querier, user int64, slug string) (Article, error) {
	a, err := findArticle(ctx, db, user, slug)
	if err == nil && a.author != user {
		err = notYours
	}
	return a, err
}

func setTags(ctx context.Context, tx *sql.Tx, article int64, tags []string) error {
	if _, err := tx.ExecContext(ctx, "delete from tags where article = $1", article); err != nil {
		return err
	}
	for _, tag := range tags {
		if _, err := tx.ExecContext(ctx, "insert into tags (article, tag) values ($1, $2) on conflict do nothing", article, tag); err != nil {
			return err
		}
	}
	return nil
}

// slugOf returns a slug for a title, with a random suffix that makes it unique.
func slugOf(title string) string {
	words := strings.FieldsFunc(strings.ToLower(title), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) })
	return strings.Join(append(words, strings.ToLower(rand.Text()[:8])), "-")
}
