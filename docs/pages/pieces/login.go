package pieces

import (
	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
	"github.com/dunlinhttp/dunlin/typed"
)

// logins returns the middleware of routes that require a login, and of routes where it is optional. The client sends the
// header Authorization with the word Token, a space, and a token that the service has signed.
func (s *service) logins() (required, optional dunlin.Middleware) {
	config := middleware.KeyAuthConfig{Scheme: "Token", Check: func(_ *dunlin.Request, token string) (user string, ok bool) {
		user, err := s.keys.Verify("login", token)
		return user, err == nil
	}}
	required = middleware.KeyAuth(config)
	config.Optional = true
	return required, middleware.KeyAuth(config)
}

// groups returns the groups of routes for users and for all readers, with their description in the OpenAPI document.
func (s *service) groups(api *dunlin.Group) (users, readers *dunlin.Group) {
	required, optional := s.logins()
	token := typed.APIKey("token", "header", "Authorization")
	users = api.Group("", typed.Declares(required, typed.Requires(token), typed.Unauthorized))
	return users, api.Group("", typed.Declares(optional, typed.Unauthorized))
}

// article returns an article. Its field Yours is true if the user is the author. Without a login the name of the user is "".
func (s *service) article(r *dunlin.Request, in BySlug) (ArticleBody, error) {
	a, err := s.find(middleware.User(r), in.Slug)
	return ArticleBody{a}, err
}
