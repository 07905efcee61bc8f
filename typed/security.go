package typed

import (
	"fmt"
	"slices"
)

// A SecurityScheme describes how a caller authenticates. Middleware must check the credentials. A declared scheme adds to
// the document the scheme, the answer 401, and, if scopes are required, the answer 403.
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

// BearerAuth returns the scheme for a bearer token in the Authorization header. format is a hint such as "JWT".
func BearerAuth(name, format string) SecurityScheme {
	return SecurityScheme{Name: name, Type: "http", Scheme: "bearer", Format: format}
}

// BasicAuth returns the scheme for a user name and a password in the Authorization header.
func BasicAuth(name string) SecurityScheme {
	return SecurityScheme{Name: name, Type: "http", Scheme: "basic"}
}

// APIKey returns the scheme for a key in a header, a query parameter or a cookie. The argument in is "header", "query" or
// "cookie". APIKey panics if this argument has another value, or if parameter is empty.
func APIKey(name, in, parameter string) SecurityScheme {
	if in != "header" && in != "query" && in != "cookie" || parameter == "" {
		panic(fmt.Sprintf("typed: APIKey(%q, %q, %q): a key is in a header, query or cookie, and has a name there", name, in, parameter))
	}
	return SecurityScheme{Name: name, Type: "apiKey", In: in, Parameter: parameter}
}

// A Requirement is a scheme with the required scopes, or several such alternatives. If an operation has several
// requirements, the caller must satisfy all of them.
type Requirement struct {
	Scheme SecurityScheme
	Scopes []string
	others []Requirement // further alternatives, see Or
}

// Requires returns a requirement that operations or middleware can declare.
func Requires(scheme SecurityScheme, scopes ...string) Requirement {
	return Requirement{Scheme: scheme, Scopes: scopes}
}

// Or returns a requirement that the caller satisfies by q or by other, for example by the token of a program or by the
// session of a person:
//
//	typed.Requires(typed.BearerAuth("token", "JWT")).Or(typed.Requires(typed.APIKey("session", "cookie", "__Host-session")))
//
// If other is the zero Requirement, credentials are optional.
func (q Requirement) Or(other Requirement) Requirement {
	q.others = slices.Concat(q.others, other.Alternatives())
	return q
}

// Alternatives returns the alternatives. Each of them has one scheme, and the caller must satisfy one of them.
func (q Requirement) Alternatives() []Requirement {
	alternatives := []Requirement{{Scheme: q.Scheme, Scopes: q.Scopes}}
	for _, other := range q.others {
		alternatives = append(alternatives, other.Alternatives()...)
	}
	return alternatives
}

// IsZero reports whether the requirement requires no credentials.
func (q Requirement) IsZero() bool {
	return q.Scheme.Name == "" && q.Scheme.Type == "" && len(q.others) == 0
}

// scoped reports whether an alternative has scopes.
func (q Requirement) scoped() bool {
	return slices.ContainsFunc(q.Alternatives(), func(alternative Requirement) bool { return len(alternative.Scopes) > 0 })
}
