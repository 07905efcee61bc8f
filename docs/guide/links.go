package main

import (
	"cmp"
	"crypto/rand"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/typed"
)

// A Link is a short link.
type Link struct {
	Code   string `json:"code"`
	URL    string `json:"url" format:"uri"`
	Clicks int64  `json:"clicks" minimum:"0"`
	owner  string
	edits  int // number of changes
}

// shown returns the target with its ETag.
func (l Link) shown() ShownLink {
	return ShownLink{fmt.Sprintf(`"%s-%d"`, l.Code, l.edits), Target{l.Code, l.URL}}
}

// CreateLink shortens a link.
type CreateLink struct {
	Body struct {
		URL  string `json:"url" format:"uri" pattern:"^https?://" maxLength:"2000" example:"https://example.com/a/long/path"`
		Code string `json:"code,omitempty" pattern:"^[a-zA-Z0-9-]{3,30}$" description:"Made up if there is none"`
	}
}

// ListLinks requests a page of links.
type ListLinks struct {
	After string `query:"after" default:"" description:"The last code of the page before"`
	Limit int    `query:"limit" default:"50" minimum:"1" maximum:"500"`
}

// LinkCode is the code of a link in the path.
type LinkCode struct {
	Code string `path:"code"`
}

// Target is the URL of a link.
type Target struct {
	Code string `json:"code"`
	URL  string `json:"url" format:"uri"`
}

// ShownLink is the target of a link with its ETag.
type ShownLink struct {
	ETag string `header:"ETag"`
	Body Target
}

// ChangeLink changes the target of a link, if the client has read the current one.
type ChangeLink struct {
	LinkCode
	IfMatch []string `header:"If-Match" minItems:"1" description:"The ETag of the link as it was read"`
	Body    struct {
		URL string `json:"url" format:"uri" pattern:"^https?://" maxLength:"2000"`
	}
}

var (
	codeTaken = typed.NewFault(409, "code-taken", "There is a link with this code already")
	noLink    = typed.NewFault(404, "no-link", "There is no such link")
)

func (s *service) create(r *dunlin.Request, in CreateLink) (typed.Created[Link], error) {
	l := Link{Code: in.Body.Code, URL: in.Body.URL, owner: s.user(r)}
	if l.Code == "" {
		l.Code = rand.Text()[:10]
	}
	if !s.links.add(l) {
		return typed.Created[Link]{}, codeTaken
	}
	return typed.Created[Link]{Location: "/" + l.Code, Body: l}, nil
}

func (s *service) list(r *dunlin.Request, in ListLinks) ([]Link, error) {
	return s.links.of(s.user(r), in.After, in.Limit), nil
}

func (s *service) show(r *dunlin.Request, in LinkCode) (ShownLink, error) {
	l, ok := s.links.get(in.Code)
	if !ok || l.owner != s.user(r) {
		return ShownLink{}, noLink
	}
	return l.shown(), nil
}

func (s *service) change(r *dunlin.Request, in ChangeLink) (ShownLink, error) {
	l, err := s.links.change(in.Code, s.user(r), func(l *Link) error {
		if !slices.Contains(in.IfMatch, l.shown().ETag) && !slices.Contains(in.IfMatch, "*") {
			return typed.PreconditionFailed // 412: another client was faster
		}
		l.URL = in.Body.URL
		return nil
	})
	return l.shown(), err
}

func (s *service) remove(r *dunlin.Request, in LinkCode) (typed.None, error) {
	if !s.links.remove(in.Code, s.user(r)) {
		return typed.None{}, noLink
	}
	return typed.None{}, nil
}

// ImportLinks is a form with files of lines "code,url".
type ImportLinks struct{ Body typed.Parts }

// Imported is the result of an import.
type Imported struct {
	Links   int `json:"links"`
	Refused int `json:"refused" description:"Lines that are none, or whose code is taken"`
}

// importLinks reads the files as they arrive, one line at a time.
func (s *service) importLinks(r *dunlin.Request, in ImportLinks) (out Imported, err error) {
	for part, err := range in.Body.All() {
		if err != nil {
			return out, err
		}
		lines := csv.NewReader(part)
		for {
			line, err := lines.Read()
			if err == io.EOF {
				break
			}
			if _, malformed := errors.AsType[*csv.ParseError](err); err != nil && !malformed {
				return out, err // the client disconnected, or the body is too large
			}
			if err == nil && len(line) == 2 && isLink(line[1]) && s.links.add(Link{Code: line[0], URL: line[1], owner: s.user(r)}) {
				out.Links++
			} else {
				out.Refused++
			}
		}
	}
	return out, nil
}

func isLink(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// links are the links of all users. A real service keeps them in its database.
type links struct {
	mu     sync.Mutex
	byCode map[string]Link
}

func (s *links) add(l Link) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.byCode[l.Code]; taken {
		return false
	}
	if s.byCode == nil {
		s.byCode = map[string]Link{}
	}
	s.byCode[l.Code] = l
	return true
}

func (s *links) get(code string) (Link, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.byCode[code]
	return l, ok
}

func (s *links) remove(code, owner string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.byCode[code]
	if !ok || l.owner != owner {
		return false
	}
	delete(s.byCode, code)
	return true
}

// change changes a link unless edit returns an error. The lock excludes other changes.
func (s *links) change(code, owner string, edit func(*Link) error) (Link, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.byCode[code]
	if !ok || l.owner != owner {
		return l, noLink
	}
	if err := edit(&l); err != nil {
		return l, err
	}
	l.edits++
	s.byCode[code] = l
	return l, nil
}

// click counts a click and returns the link, or false if it was deleted.
func (s *links) click(code string) (Link, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.byCode[code]
	if ok {
		l.Clicks++
		s.byCode[code] = l
	}
	return l, ok
}

// sorted returns the links for which passes returns true, in the given order.
func (s *links) sorted(passes func(Link) bool, order func(a, b Link) int, limit int) []Link {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []Link
	for _, l := range s.byCode {
		if passes(l) {
			found = append(found, l)
		}
	}
	slices.SortFunc(found, order)
	return found[:min(limit, len(found))]
}

func (s *links) of(owner, after string, limit int) []Link {
	return s.sorted(func(l Link) bool { return l.owner == owner && l.Code > after },
		func(a, b Link) int { return strings.Compare(a.Code, b.Code) }, limit)
}

func (s *links) mostClicked(limit int) []Link {
	return s.sorted(func(l Link) bool { return l.Clicks > 0 },
		func(a, b Link) int { return cmp.Or(cmp.Compare(b.Clicks, a.Clicks), strings.Compare(a.Code, b.Code)) }, limit)
}
