package router

import (
	"fmt"
	"slices"
	"strings"
)

// A pattern is split into segments at its slashes, and a segment into parts:
//
//	/v{major:int}.{minor:int}/files/{rest...}
//	 └ "v" {major:int} "." {minor:int}     constrained
//	                          └ "files"    static
//	                                └ catch-all
//
// The pattern "/" is one empty static segment. A trailing slash is an empty last segment. A segment that combines text and
// parameters has the rank of a constrained parameter, because the text constrains its values.

// A rank is a kind of segment. A lookup tries segments with a smaller rank first.
type rank uint8

const (
	static      rank = iota // text
	constrained             // parameters with constraints or with text
	named                   // a parameter without constraint
	catchAll                // a parameter for the rest of the path
)

func (r rank) String() string {
	return [...]string{"static", "constrained", "named", "catch-all"}[r]
}

// maxParams is the maximum number of parameters of a route in its host and path together.
const maxParams = 255

// maxPattern is the maximum length of a pattern in bytes. It limits the depth of the tree of nodes.
const maxPattern = 4096

// maxSegmentParams is the maximum number of parameters of a segment.
const maxSegmentParams = 16

// A part is a piece of a segment: a parameter if the field name is set, and otherwise literal text.
type part struct {
	literal    string // in canonical form
	name       string
	constraint *constraint // nil if the parameter matches any value
}

type segment struct {
	rank  rank
	parts []part // nil for static segments
	// shape is the canonical text of the segment without names of parameters. Segments with the same shape match the same
	// values.
	shape string
}

// pattern is a parsed path or host pattern.
type pattern struct {
	text     string
	segments []segment
	names    []string // names of the parameters in order of appearance
}

// A PatternError gives the reason why a pattern was refused.
type PatternError struct {
	Pattern string
	Offset  int // offset in bytes in Pattern
	Reason  string
}

func (e *PatternError) Error() string {
	return fmt.Sprintf("pattern %q, offset %d: %s", e.Pattern, e.Offset, e.Reason)
}

// patternParser reads a pattern from left to right.
type patternParser struct {
	text       string
	pos        int
	separator  byte // '/' in paths, '.' in hosts
	constraint func(text string) (*constraint, error)
	pattern    pattern
}

func (p *patternParser) fail(offset int, format string, args ...any) error {
	return &PatternError{Pattern: p.text, Offset: offset, Reason: fmt.Sprintf(format, args...)}
}

// parsePath parses a path pattern. constraint returns the constraint for the text after the colon of a parameter.
func parsePath(text string, constraint func(string) (*constraint, error)) (*pattern, error) {
	p := &patternParser{text: text, separator: '/', constraint: constraint}
	if text == "" || text[0] != '/' {
		return nil, p.fail(0, "a pattern must begin with a slash")
	}
	p.pos = 1
	return p.parse()
}

// parseHost parses a host pattern without a port. A host pattern cannot have a catch-all.
func parseHost(text string, constraint func(string) (*constraint, error)) (*pattern, error) {
	p := &patternParser{text: text, separator: '.', constraint: constraint}
	return p.parse()
}

func (p *patternParser) parse() (*pattern, error) {
	if len(p.text) > maxPattern {
		return nil, p.fail(maxPattern, "a pattern must have at most %d bytes", maxPattern)
	}
	p.pattern.text = p.text
	p.pattern.segments = make([]segment, 0, 1+strings.Count(p.text[p.pos:], string(p.separator)))
	for {
		start := p.pos
		seg, err := p.segment()
		if err != nil {
			return nil, err
		}
		last := p.pos == len(p.text)
		if err := p.checkSegment(seg, start, last); err != nil {
			return nil, err
		}
		p.pattern.segments = append(p.pattern.segments, seg)
		if last {
			return &p.pattern, nil
		}
		p.pos++ // the separator
	}
}

// checkSegment refuses a segment that no path or host can match, a catch-all in the wrong place, and the parameter syntax of
// other routers.
func (p *patternParser) checkSegment(seg segment, start int, last bool) error {
	switch {
	case seg.rank == catchAll && p.separator != '/':
		return p.fail(start, "a host cannot have a catch-all")
	case seg.rank == catchAll && !last:
		return p.fail(start, "a catch-all must be the last segment")
	case seg.rank != static:
		return nil
	case seg.shape == "" && p.separator == '.':
		return p.fail(start, "empty label in host")
	case seg.shape == "" && !last:
		return p.fail(start, "empty segment: a path with a double slash never matches")
	case p.separator == '/' && strings.HasPrefix(p.text[start:], ":"):
		return p.fail(start, "a parameter is written {%s}, not %s (write %%3A for a literal colon)", nameIn(seg.shape[1:], "name"), seg.shape)
	case p.separator == '/' && strings.HasPrefix(p.text[start:], "*"):
		return p.fail(start, "the rest of a path is written {%s...}, not %s (write %%2A for a literal asterisk)", nameIn(seg.shape[1:], "rest"), seg.shape)
	case p.separator == '/' && (seg.shape == "." || seg.shape == ".."):
		return p.fail(start, "a path with a %q segment never matches", seg.shape)
	}
	return nil
}

// nameIn returns the parameter name in s, which is the rest of a segment after : or * in the syntax of another router. If s has
// no name, it returns the argument otherwise.
func nameIn(s, otherwise string) string {
	if name := strings.TrimRight(s, "?*+"); name != "" && !strings.ContainsAny(name, "(){}<>:*") {
		return name
	}
	return otherwise
}

// segment parses up to the next separator that is not in braces.
func (p *patternParser) segment() (segment, error) {
	var seg segment
	start := p.pos
	for p.pos < len(p.text) && p.text[p.pos] != p.separator {
		if p.text[p.pos] != '{' {
			literal, err := p.literal()
			if err != nil {
				return seg, err
			}
			seg.shape += literal
			seg.parts = append(seg.parts, part{literal: literal})
			continue
		}
		at := p.pos
		if n := len(seg.parts); n > 0 && seg.parts[n-1].name != "" {
			return seg, p.fail(at, "two parameters need text between them")
		}
		param, all, err := p.parameter()
		if err != nil {
			return seg, err
		}
		if all {
			if at != start || p.pos < len(p.text) && p.text[p.pos] != p.separator {
				return seg, p.fail(at, "a catch-all must be a whole segment")
			}
			seg.rank = catchAll
		}
		seg.parts = append(seg.parts, param)
		seg.shape += param.shape()
		if seg.params() > maxSegmentParams {
			return seg, p.fail(at, "more than %d parameters in a segment", maxSegmentParams)
		}
	}
	if seg.rank == static {
		seg.rank = rankOf(seg.parts)
	}
	if seg.rank == static {
		seg.parts = nil
	}
	return seg, nil
}

func rankOf(parts []part) rank {
	switch {
	case len(parts) == 0 || len(parts) == 1 && parts[0].name == "":
		return static
	case len(parts) == 1 && parts[0].constraint == nil:
		return named
	default:
		return constrained
	}
}

// shape returns the text of a parameter without its name. NUL cannot occur in literal text, so different parts have different
// shapes.
func (p part) shape() string {
	if p.constraint == nil {
		return "{\x00}"
	}
	return "{\x00" + p.constraint.text + "\x00}"
}

// literal reads text up to the next brace or separator and returns the canonical form of the text.
func (p *patternParser) literal() (string, error) {
	start, plain := p.pos, true
	var out []byte
	for p.pos < len(p.text) {
		c := p.text[p.pos]
		if c == p.separator || c == '{' {
			break
		}
		switch {
		case c == '}':
			return "", p.fail(p.pos, "closing brace without an opening one")
		case c < ' ' || c == 0x7f:
			return "", p.fail(p.pos, "control character %#02x", c)
		case p.separator == '.' && !isHostByte(c):
			return "", p.fail(p.pos, "%q cannot occur in a host", c)
		case p.separator == '.':
			plain = plain && c == lower(c)
			out = append(out, lower(c))
		case c == '%':
			escape, err := p.percent()
			if err != nil {
				return "", err
			}
			out, plain = append(out, escape...), false
			continue
		default:
			out = append(out, c)
		}
		p.pos++
	}
	if plain {
		return p.text[start:p.pos], nil
	}
	return string(out), nil
}

// percent parses a '%' in a pattern. %2F and %25 are unchanged, as in canonical paths. %3A and %2A represent the colon and the
// asterisk. A '%' without two hexadecimal digits represents itself. Any other escape is refused.
func (p *patternParser) percent() (string, error) {
	rest := p.text[p.pos:]
	if len(rest) < 3 || !isHex(rest[1]) || !isHex(rest[2]) {
		p.pos++
		return "%25", nil
	}
	b := unhex(rest[1])<<4 | unhex(rest[2])
	text := ""
	switch b {
	case '/':
		text = "%2F"
	case '%':
		text = "%25"
	case ':', '*': // a pattern must escape these characters at the beginning of a segment, see checkSegment
		text = string(rune(b))
	default:
		return "", p.fail(p.pos, "write the character itself instead of %s", rest[:3])
	}
	p.pos += 3
	return text, nil
}

// parameter reads "{name}", "{name:constraint}" or "{name...}".
func (p *patternParser) parameter() (param part, all bool, err error) {
	open := p.pos
	end := closingBrace(p.text, open)
	if end < 0 {
		return param, false, p.fail(open, "opening brace without a closing one")
	}
	body := p.text[open+1 : end]
	name, text, constrained := strings.Cut(body, ":")
	if !constrained {
		name, all = strings.CutSuffix(name, "...")
	}
	if !isName(name) {
		return param, false, p.fail(open+1, "%q is not a parameter name (a letter or _, then letters, digits, _ or -)", name)
	}
	param.name = name
	if constrained {
		if param.constraint, err = p.constraint(text); err != nil {
			return param, false, p.fail(open+len(name)+2, "%v", err)
		}
	}
	if slices.Contains(p.pattern.names, name) {
		return param, false, p.fail(open+1, "parameter %q occurs twice", name)
	}
	if len(p.pattern.names) == maxParams {
		return param, false, p.fail(open, "more than %d parameters", maxParams)
	}
	p.pattern.names = append(p.pattern.names, name)
	p.pos = end + 1
	return param, all, nil
}

// closingBrace returns the position of the brace that closes the brace at open. As in regular expressions, braces between them
// nest, a backslash escapes the next byte, and braces in a character class do not count.
func closingBrace(s string, open int) int {
	depth, class := 0, -1
	for i := open; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case class >= 0:
			// A ']' at the start of a class, or after '^' at the start, is a member of the class.
			if c == ']' && i > class+1 && !(i == class+2 && s[class+1] == '^') {
				class = -1
			} else if c == '[' && i+1 < len(s) && s[i+1] == ':' {
				if n := strings.Index(s[i:], ":]"); n > 0 {
					i += n + 1
				}
			}
		case c == '[':
			class = i
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

func isName(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !isAlpha(c) && c != '_' && (i == 0 || !isDigit(c) && c != '-') {
			return false
		}
	}
	return s != ""
}

func isHostByte(c byte) bool {
	return isAlpha(c) || isDigit(c) || c == '-' || c == '_' || c == '[' || c == ']' || c == ':' || c >= 0x80
}

func isAlpha(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isHex(c byte) bool   { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

// unhex returns the value of a hexadecimal digit.
func unhex(c byte) byte {
	if isDigit(c) {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}

// lower returns ASCII letters in lower case and other bytes unchanged.
func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
