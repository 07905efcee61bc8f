package negotiate

import (
	"fmt"
	"strings"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/ext"
)

// Languages are the languages in which a service has its texts. A Languages is immutable and safe for
// concurrent use.
type Languages struct {
	tags   []string
	blocks []*dunlin.HeaderBlock // Content-Language of each tag
}

// NewLanguages returns the languages with the given tags (RFC 5646), such as "en", "de" and "pt-BR".
// The first tag is the default. It panics without a tag, and if a tag is malformed or repeated.
func NewLanguages(tags ...string) *Languages {
	if len(tags) == 0 {
		panic("negotiate: NewLanguages: there is no language")
	}
	l := &Languages{}
	for _, tag := range tags {
		if !basicRange(tag) || tag == "*" {
			panic(fmt.Sprintf("negotiate: NewLanguages: %q is not a language tag such as en or pt-BR", tag))
		}
		if l.index(tag) >= 0 {
			panic(fmt.Sprintf("negotiate: NewLanguages: %q is repeated", tag))
		}
		l.tags = append(l.tags, tag)
		l.blocks = append(l.blocks, dunlin.NewHeaderBlock("Content-Language", tag))
	}
	return l
}

// Match returns the tag of the language that Accept-Language prefers, by the lookup of RFC 4647 section
// 3.4. The language ranges of the header are tried in the order of their weights. Each range is
// shortened from the end until it is a tag of l, so that "de-CH" finds "de". A range of weight 0
// excludes its tag and the tags that begin with it. The range "*" is skipped. If no range finds a tag,
// the result is the default, even if the request excludes it. Ranges after the first 64, and after the
// first 2 KiB, are ignored.
func (l *Languages) Match(r *dunlin.Request) string {
	return l.tags[l.match(r.HeaderList("Accept-Language"))]
}

// maxRanges and maxText limit the time to match a header. The time grows with the product of the number
// of ranges and the length of the header.
const (
	maxRanges = 64
	maxText   = 2 << 10 // bytes
)

// match returns the index of the tag that Match returns. Among the ranges that find a tag, the range with the greatest
// weight selects the tag. If several have this weight, the first of them does.
func (l *Languages) match(accept string) (found int) {
	if len(accept) > maxText {
		accept = accept[:strings.LastIndexByte(accept[:maxText], ',')+1]
	}
	greatest, n := 0, 0
	for element, params := range elements(accept) {
		if n++; n > maxRanges {
			break
		}
		if w := weight(params); w > greatest && basicRange(element) {
			if i := l.lookup(element, accept); i >= 0 {
				found, greatest = i, w
			}
		}
	}
	return found
}

// lookup returns the index of the tag for one range, or -1.
func (l *Languages) lookup(tag, accept string) int {
	for {
		if i := l.index(tag); i >= 0 && !excluded(l.tags[i], accept) {
			return i
		}
		cut := strings.LastIndexByte(tag, '-')
		if cut < 0 {
			return -1
		}
		if tag = tag[:cut]; len(tag) >= 2 && tag[len(tag)-2] == '-' {
			tag = tag[:len(tag)-2] // a single character introduces the subtag that was just removed
		}
	}
}

// excluded reports whether the longest range that matches a tag has the weight 0.
func excluded(tag, accept string) bool {
	length, out, ranges := 0, false, 0
	for element, params := range elements(accept) {
		if ranges++; ranges > maxRanges {
			break
		}
		n := len(element)
		if n > length && len(tag) >= n && strings.EqualFold(tag[:n], element) && (len(tag) == n || tag[n] == '-') {
			length, out = n, weight(params) == 0
		}
	}
	return out
}

// index returns the index of a tag in l, or -1.
func (l *Languages) index(tag string) int {
	for i, have := range l.tags {
		if strings.EqualFold(have, tag) {
			return i
		}
	}
	return -1
}

// basicRange reports whether s is a basic language range (RFC 4647, section 2.1).
func basicRange(s string) bool {
	if s == "*" {
		return true
	}
	length, first := 0, true
	for i := 0; i <= len(s); i++ {
		if i == len(s) || s[i] == '-' {
			if length == 0 || length > 8 {
				return false
			}
			length, first = 0, false
			continue
		}
		c := s[i] | 0x20
		if (c < 'a' || c > 'z') && (first || s[i] < '0' || s[i] > '9') {
			return false
		}
		length++
	}
	return true
}

var varyLanguage = dunlin.NewHeaderBlock("Vary", "Accept-Language")

// Middleware returns middleware that adds Vary: Accept-Language to responses. It also adds
// Content-Language with the result of Match, unless the action has set Content-Language.
func (l *Languages) Middleware() dunlin.Middleware {
	return func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			language := l.match(r.HeaderList("Accept-Language"))
			return ext.DefaultHeaders(varyOn(next(r), "Accept-Language", varyLanguage), l.blocks[language])
		}
	}
}
