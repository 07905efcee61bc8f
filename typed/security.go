package typed

import (
	"fmt"
	"slices"
)

// A SecurityScheme says how a caller proves who it is. Declaring one checks nothing:
// that is middleware's work. It puts the scheme into the document, with the answer 401,
// and 403 where scopes are asked for.
type SecurityScheme struct {
	Name        string // in the document
	Type        string // "http", "apiKey", "oauth2", "openIdConnect" or "mutualTLS"
	Scheme      string // of http: "bearer", "basic"
	Format      string // of bearer tokens, as a hint: "JWT"
	In          string // of apiKey: "header", "query" or "cookie"
	Parameter   string // of apiKey: its name
	URL         string // of openIdConnect: of its configuration
	TokenURL    string // of oauth2, by client credentials
	Scopes      map[string]string
	Description string
}

// BearerAuth is a token in the Authorization header.
func BearerAuth(name, format string) SecurityScheme {
	return SecurityScheme{Name: name, Type: "http", Scheme: "bearer", Format: format}
}

// BasicAuth is a name and a password in the Authorization header.
func BasicAuth(name string) SecurityScheme {
	return SecurityScheme{Name: name, Type: "http", Scheme: "basic"}
}

// APIKey is a key in a header, a query parameter or a cookie.
func APIKey(name, in, parameter string) SecurityScheme {
	if in != "header" && in != "query" && in != "cookie" || parameter == "" {
		panic(fmt.Sprintf("typed: APIKey(%q, %q, %q): a key is in a header, query or cookie, and has a name there", name, in, parameter))
	}
	return SecurityScheme{Name: name, Type: "apiKey", In: in, Parameter: parameter}
}

// A Requirement is a scheme with the scopes that are asked for, or one of several. An
// operation with several requirements asks for all of them.
type Requirement struct {
	Scheme SecurityScheme
	Scopes []string
	others []Requirement // each of them suffices in its place, see Or
}

// Requires is a requirement to declare with middleware or operations.
func Requires(scheme SecurityScheme, scopes ...string) Requirement {
	return Requirement{Scheme: scheme, Scopes: scopes}
}

// Or returns the requirement of which this or another one suffices, such as the token of
// a program or the session of a person:
//
//	typed.Requires(typed.BearerAuth("token", "JWT")).Or(typed.Requires(typed.APIKey("session", "cookie", "__Host-session")))
func (q Requirement) Or(other Requirement) Requirement {
	q.others = slices.Concat(q.others, other.Ways())
	return q
}

// Ways lists what suffices, each of one scheme.
func (q Requirement) Ways() []Requirement {
	ways := []Requirement{{Scheme: q.Scheme, Scopes: q.Scopes}}
	for _, other := range q.others {
		ways = append(ways, other.Ways()...)
	}
	return ways
}

// scoped reports whether scopes are asked for.
func (q Requirement) scoped() bool {
	return slices.ContainsFunc(q.Ways(), func(way Requirement) bool { return len(way.Scopes) > 0 })
}
