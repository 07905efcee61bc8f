package pieces

import (
	"net/url"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
	"github.com/dunlinhttp/dunlin/typed"
)

// CreateArticle is the input of createArticle, with its rules.
type CreateArticle struct {
	Body struct {
		Article struct {
			Title       string   `json:"title" minLength:"1" maxLength:"200"`
			Description string   `json:"description" minLength:"1"`
			Text        string   `json:"body" minLength:"1"`
			Tags        []string `json:"tagList,omitempty" maxItems:"20"`
		} `json:"article"`
	}
}

var titleTaken = typed.NewFault(422, "title-taken", "an article has this title")

func registerCreate(users *dunlin.Group, s *service) {
	typed.Post(users, "/articles", s.createArticle).Name("createArticle").Faults(titleTaken)
}

func (s *service) createArticle(r *dunlin.Request, in CreateArticle) (typed.Created[ArticleBody], error) {
	a, err := s.add(middleware.User(r), in)
	return typed.Created[ArticleBody]{Location: "/api/articles/" + url.PathEscape(a.Slug), Body: ArticleBody{a}}, err
}
