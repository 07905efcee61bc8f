package typed

import (
	"bytes"
	"errors"
	"iter"
	"mime"
	"strings"
)

// formPart is one part of a multipart/form-data body. data is borrowed from the body.
type formPart struct {
	name        string
	named       bool // the part has a name, which may be empty
	file        bool
	fileName    string
	contentType string
	data        []byte
}

const longestPartHead = 8 << 10 // bytes

var (
	errNoBoundary = errors.New("the form has no boundary")
	errCutForm    = errors.New("the form ends before its last boundary")
	errManyParts  = errors.New("the form has too many parts")
)

// parts yields the parts of a complete body (RFC 2046 section 5.1, RFC 7578) without copying it. After an error the sequence
// ends. The error is errManyParts if the body has more than limit parts.
func parts(body []byte, boundary string, limit int) iter.Seq2[formPart, error] {
	return func(yield func(formPart, error) bool) {
		if boundary == "" {
			yield(formPart{}, errNoBoundary)
			return
		}
		delimiter := []byte("\r\n--" + boundary)
		rest, last, err := nextPart(append([]byte("\r\n"), body[:min(len(body), len(delimiter))]...), body, delimiter)
		for n := 0; err == nil && !last; n++ {
			var part formPart
			if part, rest, last, err = readPart(rest, delimiter); err == nil && n >= limit {
				err = errManyParts
			}
			if err == nil && !yield(part, nil) {
				return
			}
		}
		if err != nil {
			yield(formPart{}, err)
		}
	}
}

// nextPart skips the text before the first part. start is the beginning of the body with a line break before it.
func nextPart(start, body, delimiter []byte) (rest []byte, last bool, err error) {
	if bytes.HasPrefix(start, delimiter) {
		return afterDelimiter(body[len(delimiter)-2:])
	}
	i := bytes.Index(body, delimiter)
	if i < 0 {
		return nil, false, errCutForm
	}
	return afterDelimiter(body[i+len(delimiter):])
}

// afterDelimiter reads the rest of the line after a delimiter.
func afterDelimiter(b []byte) (rest []byte, last bool, err error) {
	if bytes.HasPrefix(b, []byte("--")) {
		return nil, true, nil
	}
	b = bytes.TrimLeft(b, " \t")
	if !bytes.HasPrefix(b, []byte("\r\n")) {
		return nil, false, errors.New("a boundary is followed by something else than a line break")
	}
	return b[2:], false, nil
}

// readPart reads the part at the beginning of b.
func readPart(b, delimiter []byte) (p formPart, rest []byte, last bool, err error) {
	head := b
	for {
		line, after, found := bytes.Cut(b, []byte("\r\n"))
		if !found {
			return p, nil, false, errCutForm
		}
		if len(head)-len(after) > longestPartHead {
			return p, nil, false, errors.New("a part's head is too long")
		}
		b = after
		if len(line) == 0 {
			break
		}
		if bytes.ContainsFunc(line, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) {
			return p, nil, false, errors.New("a part's head has control characters")
		}
		name, value, found := strings.Cut(string(line), ":")
		if !found || name == "" || strings.ContainsAny(name, " \t") {
			return p, nil, false, errors.New("a part's head is malformed")
		}
		if err = p.header(name, strings.TrimSpace(value)); err != nil {
			return p, nil, false, err
		}
	}
	if !p.named {
		return p, nil, false, errors.New("a part has no name")
	}
	// The line break before a delimiter belongs to the delimiter. In an empty part this line break may be the one that ends
	// the head.
	from := head[:len(head)-len(b)]
	whole := head[len(from)-2:]
	i := bytes.Index(whole, delimiter)
	if i < 0 {
		return p, nil, false, errCutForm
	}
	if i >= 2 {
		p.data = whole[2:i:i]
	}
	rest, last, err = afterDelimiter(whole[i+len(delimiter):])
	return p, rest, last, err
}

// header evaluates one header field of the part.
func (p *formPart) header(name, value string) error {
	switch {
	case strings.EqualFold(name, "Content-Disposition"):
		kind, params, err := mime.ParseMediaType(value)
		if err != nil || strings.Contains(value, "*") { // RFC 7578 section 4.2 forbids filename*
			kind, params = looseParams(value)
		}
		if kind != "form-data" {
			return errors.New("a part's Content-Disposition is malformed")
		}
		p.name, p.named = params["name"]
		p.fileName, p.file = params["filename"]
	case strings.EqualFold(name, "Content-Type"):
		p.contentType = value
	case strings.EqualFold(name, "Content-Transfer-Encoding"):
		if !strings.EqualFold(value, "binary") && !strings.EqualFold(value, "8bit") && !strings.EqualFold(value, "7bit") {
			return errors.New("a part has a transfer encoding, which forms do not have")
		}
	}
	return nil
}

// looseParams parses a Content-Disposition whose quoted values only RFC 7578 permits: they may contain all bytes except the
// quotation mark. A backslash may escape a quotation mark or a backslash. A backslash before the quotation mark that ends
// the value is literal, because browsers do not escape backslashes.
func looseParams(value string) (kind string, params map[string]string) {
	kind, rest, _ := strings.Cut(value, ";")
	params = map[string]string{}
	for rest = strings.TrimLeft(rest, " \t"); rest != ""; rest = strings.TrimLeft(rest, " \t;") {
		name, after, found := strings.Cut(rest, "=")
		if !found {
			return "", nil
		}
		if !strings.HasPrefix(after, `"`) {
			text, more, _ := strings.Cut(after, ";")
			params[strings.ToLower(name)], rest = strings.TrimSpace(text), more
			continue
		}
		var text strings.Builder
		i := 1
		for ; i < len(after) && after[i] != '"'; i++ {
			if after[i] == '\\' && i+1 < len(after) && (after[i+1] == '"' && !endsValue(after[i+2:]) || after[i+1] == '\\') {
				i++
			}
			text.WriteByte(after[i])
		}
		if i == len(after) {
			return "", nil
		}
		params[strings.ToLower(strings.TrimSpace(name))], rest = text.String(), after[i+1:]
	}
	return strings.TrimSpace(kind), params
}

// endsValue reports whether a quotation mark ends a value. rest is the text after the quotation mark.
func endsValue(rest string) bool {
	rest = strings.TrimLeft(rest, " \t")
	return rest == "" || rest[0] == ';'
}
