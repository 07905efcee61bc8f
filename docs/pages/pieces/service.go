// Package pieces has the three pieces of a service that comparisons of frameworks count in lines: a typed action that creates
// something (create.go), required and optional login (login.go), and one body for all errors (problems.go). This file has what
// any framework leaves to the service: its data.
package pieces

import (
	"strings"
	"sync"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
	"github.com/dunlinhttp/dunlin/typed"
)

// Article is an article as readers see it.
type Article struct {
	Slug   string   `json:"slug"`
	Title  string   `json:"title"`
	Author string   `json:"author"`
	Tags   []string `json:"tagList,omitempty"`
	Yours  bool     `json:"yours"`
}

// ArticleBody is the body of an answer with one article.
type ArticleBody struct {
	Article Article `json:"article"`
}

// BySlug names an article in the path.
type BySlug struct {
	Slug string `path:"slug"`
}

var noArticle = typed.NewFault(404, "no-article", "there is no such article")

type service struct {
	keys *middleware.KeyRing

	mu       sync.Mutex
	articles map[string]Article // by slug
}

// New returns the service. Tokens are names of users, signed by keys for the purpose "login".
func New(config dunlin.Config, keys *middleware.KeyRing) *dunlin.App {
	config.Problems = problems
	app := dunlin.New(config)
	s := &service{keys: keys, articles: map[string]Article{}}
	users, readers := s.groups(app.Group("/api"))
	registerCreate(users, s)
	typed.Get(readers, "/articles/{slug}", s.article).Name("article").Faults(noArticle)
	return app
}

func (s *service) add(author string, in CreateArticle) (Article, error) {
	slug := strings.ReplaceAll(strings.ToLower(in.Body.Article.Title), " ", "-")
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.articles[slug]; ok {
		return Article{}, titleTaken
	}
	s.articles[slug] = Article{Slug: slug, Title: in.Body.Article.Title, Author: author, Tags: in.Body.Article.Tags}
	return s.seenBy(author, slug), nil
}

func (s *service) find(reader, slug string) (Article, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.articles[slug]; !ok {
		return Article{}, noArticle
	}
	return s.seenBy(reader, slug), nil
}

func (s *service) seenBy(reader, slug string) Article {
	a := s.articles[slug]
	a.Yours = reader != "" && reader == a.Author
	return a
}
