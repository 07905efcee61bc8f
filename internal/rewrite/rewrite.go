// Package rewrite has paths stand for others before requests are routed.
package rewrite

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/dunlinhttp/dunlin/router"
)

// Rules say which paths stand for which others. The zero value has none. Rules may be added while paths are looked up, in any number of goroutines.
type Rules struct {
	router router.Router[*target]
	any    atomic.Bool
}

// A Match is what Path works in: one that is used again spares it an allocation. The zero value is ready.
type Match = router.Match[*target]

// A target is the path that another one stands for: /people/{id}/files/{path...} has the texts "/people/", "/files/" and "", and two parameters.
type target struct {
	texts  []string // canonical, one more than params
	params []int    // of the rule's pattern
}

// Add adds a rule: a path that the pattern from matches stands for to, in which {name} is a parameter of from, and {name...} one with slashes.
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
	if err = r.router.Add(reg); err == nil { // it knows what is ambiguous
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
			return nil, fmt.Errorf("has {%s}, which is no parameter of the pattern", strings.TrimSuffix(piece[:len(piece)-len(text)], "}"))
		}
		t.texts, t.params = append(t.texts, text), append(t.params, i)
	}
	whole := strings.Join(t.texts, "x")
	canonical, err := router.Canonical(nil, whole)
	if _, dirty := router.Clean(whole); err != nil || string(canonical) != whole || dirty || !strings.HasPrefix(whole, "/") || strings.ContainsAny(whole, "}?#") {
		return nil, fmt.Errorf("is no path as patterns have them: it begins with a slash, has no query and no segment that is empty, «.» or «..»")
	}
	return t, nil
}

// Any reports whether there are rules.
func (r *Rules) Any() bool { return r.any.Load() }

// Path returns the path that a canonical one stands for; false for one that stands for itself. What a rule has made is not looked up again, so
// rules make no circles.
func (r *Rules) Path(path string, m *Match) (string, bool) {
	if r.router.Lookup(http.MethodGet, "", path, m) != router.Found {
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

// OtherSlash returns a path with a slash more or less at its end, to redirect to. Where it stands for another one, that was sent ("" for none), it is
// that one, changed in this way, if the rules lead from there to the same: else nobody could have got there by what they know.
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

// SetPath has a request of net/http ask for a canonical path. The request's URL is replaced, not changed: others may have it.
func SetPath(req *http.Request, path string) {
	u := *req.URL
	u.Path, u.RawPath = router.Unescape(path), ""
	if escaped := string(router.AppendEscaped(nil, path)); u.EscapedPath() != escaped {
		u.RawPath = escaped
	}
	req.URL = &u
}
