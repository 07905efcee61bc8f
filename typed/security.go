package typed

import (
	"fmt"
	"slices"
)

// A SecurityScheme describes how a caller authenticates. Middleware must check it. Declaring one adds the scheme to the
// document, with the answer 401, and with 403 if scopes are required.
type SecurityScheme struct {
	Name        string // name in the document
	Type        string // "http", "apiKey", "oauth2", "openIdConnect" or "mutualTLS"
	Scheme      string // for http: "bearer", "basic"
	Format      string // for bearer tokens, a hint: "JWT"
	In          string // for apiKey: "header", "query" or "cookie"
	Parameter   string // for apiKey: name of the header, query parameter or cookie
	URL         string // for openIdConnect: URL of the configuration
	TokenURL    string // for oauth2 with client credentials
	Scopes      map[string]string
	Description string
}

// BearerAuth returns the scheme of a token in the Authorization header.
func BearerAuth(name, format string) SecurityScheme {
	return SecurityScheme{Name: name, Type: "http", Scheme: "bearer", Format: format}
}

// BasicAuth returns the scheme of a name and a password in the Authorization header.
func BasicAuth(name string) SecurityScheme {
	return SecurityScheme{Name: name, Type: "http", Scheme: "basic"}
}

// APIKey returns the scheme of a key in a header, a query parameter or a cookie. It panics if in is
// none of these or parameter is empty.
func APIKey(name, in, parameter string) SecurityScheme {
	if in != "header" && in != "query" && in != "cookie" || parameter == "" {
		panic(fmt.Sprintf("typed: APIKey(%q, %q, %q): a key is in a header, query or cookie, and has a name there", name, in, parameter))
	}
	return SecurityScheme{Name: name, Type: "apiKey", In: in, Parameter: parameter}
}

// A Requirement is a scheme with the required scopes, or a choice of several schemes. If an operation has several
// requirements, the caller must meet all of them.
type Requirement struct {
	Scheme SecurityScheme
	Scopes []string
	others []Requirement // alternatives, see Or
}

// Requires returns a requirement to declare with middleware or operations.
func Requires(scheme SecurityScheme, scopes ...string) Requirement {
	return Requirement{Scheme: scheme, Scopes: scopes}
}

// Or returns a requirement that q or other satisfies, such as the token of a program or the session
// of a person:
//
//	typed.Requires(typed.BearerAuth("token", "JWT")).Or(typed.Requires(typed.APIKey("session", "cookie", "__Host-session")))
//
// The zero Requirement as other makes the credentials optional.
func (q Requirement) Or(other Requirement) Requirement {
	q.others = slices.Concat(q.others, other.Alternatives())
	return q
}

// Alternatives returns the alternatives. Each has one scheme and satisfies the requirement.
func (q Requirement) Alternatives() []Requirement {
	alternatives := []Requirement{{Scheme: q.Scheme, Scopes: q.Scopes}}
	for _, other := range q.others {
		alternatives = append(alternatives, other.Alternatives()...)
	}
	return alternatives
}

// IsZero reports whether the requirement needs no credentials.
func (q Requirement) IsZero() bool {
	return q.Scheme.Name == "" && q.Scheme.Type == "" && len(q.others) == 0
}

// scoped reports whether the requirement has scopes.
func (q Requirement) scoped() bool {
	return slices.ContainsFunc(q.Alternatives(), func(alternative Requirement) bool { return len(alternative.Scopes) > 0 })
}
