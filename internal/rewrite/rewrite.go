// Package rewrite maps the path of a request to another path before routing.
package rewrite

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/dunlinhttp/dunlin/router"
)

// Rules maps paths to other paths. The zero value has no rules. Rules may be added while Path is called.
type Rules struct {
	router router.Router[*target]
	any    atomic.Bool
}

// A Match is the working memory of Path. A caller that reuses a Match saves an allocation. The zero value is ready for
// use.
type Match = router.Match[*target]

// A target is a path with parameters. The target /people/{id}/files/{path...} has the texts "/people/", "/files/" and
// "", and two parameters.
type target struct {
	texts  []string // in canonical form; their number is one more than that of params
	params []int    // indexes of the parameters in the pattern of the rule
}

// Add adds a rule that maps paths that match the pattern from to the path to. In to, {name} represents the value of a
// parameter of from, and {name...} represents the value of a catch-all, which may contain slashes. place is the
// position of the registration, for messages.
func (r *Rules) Add(from, to, place string) error {
	var scratch router.Router[*target]
	reg := router.Route[*target]{Methods: "*", Pattern: from, Place: place}
	if err := scratch.Add(reg); err != nil {
		return err
	}
	var err error
	if reg.Value, err = parse(to, scratch.Info(0).Params); err != nil {
		return fmt.Errorf("the target %q %w", to, err)
	}
	if err = r.router.Add(reg); err == nil { // fails if the pattern is ambiguous
		r.any.Store(true)
	}
	return err
}

func parse(to string, params []router.Param) (*target, error) {
	pieces := strings.Split(to, "{")
	t := &target{texts: pieces[:1:1]}
	for _, piece := range pieces[1:] {
		name, text, closed := strings.Cut(piece, "}")
		if !closed {
			return nil, fmt.Errorf("has a brace that is not closed")
		}
		name, rest := strings.CutSuffix(name, "...")
		i := slices.IndexFunc(params, func(p router.Param) bool { return p.Name == name && p.Rest == rest })
		if i < 0 {
			return nil, fmt.Errorf("has {%s}, which is not a parameter of the pattern", strings.TrimSuffix(piece[:len(piece)-len(text)], "}"))
		}
		t.texts, t.params = append(t.texts, text), append(t.params, i)
	}
	whole := strings.Join(t.texts, "x")
	canonical, err := router.Canonical(nil, whole)
	if _, dirty := router.Clean(whole); err != nil || string(canonical) != whole || dirty || !strings.HasPrefix(whole, "/") || strings.ContainsAny(whole, "}?#") {
		return nil, fmt.Errorf("is not a path of a pattern: it must begin with a slash, and have no query and no segment that is empty, «.» or «..»")
	}
	return t, nil
}

// Any reports whether at least one rule exists.
func (r *Rules) Any() bool { return r.any.Load() }

// Path returns the path to which a canonical path is mapped. It returns false if no rule matches. The result is not
// mapped again, so rules cannot form a loop.
func (r *Rules) Path(path string, m *Match) (string, bool) {
	if r.router.Lookup(http.MethodGet, "", path, m) != router.OutcomeFound {
		return "", false
	}
	t := m.Value()
	var b strings.Builder
	b.WriteString(t.texts[0])
	for i, p := range t.params {
		b.WriteString(m.Span(p).Of(path))
		b.WriteString(t.texts[i+1])
	}
	return b.String(), true
}

// OtherSlash returns the path of a redirect that adds or removes a final slash. path is the path without a route. sent
// is the path that the client sent if a rule mapped it to path, and otherwise "". If the rules map sent with the same
// change to the changed path, the result is the changed sent, because the client knows this form. Otherwise the result
// is the changed path.
func (r *Rules) OtherSlash(sent, path string) string {
	path = otherSlash(path)
	if sent != "" {
		sent = otherSlash(sent)
		if to, ok := r.Path(sent, new(Match)); ok && to == path {
			return sent
		}
	}
	return path
}

func otherSlash(path string) string {
	if short, slash := strings.CutSuffix(path, "/"); slash {
		return short
	}
	return path + "/"
}

// SetPath sets the canonical path of a net/http request. It replaces the URL of the request by a copy, because other
// code may share the URL.
func SetPath(req *http.Request, path string) {
	u := *req.URL
	u.Path, u.RawPath = router.Unescape(path), ""
	if escaped := string(router.AppendEscaped(nil, path)); u.EscapedPath() != escaped {
		u.RawPath = escaped
	}
	req.URL = &u
}
