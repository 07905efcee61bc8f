package typed

import (
	"net/url"
	"strings"
)

// bindQuery reads the query once, from left to right. As in package net/url, it skips a pair with a
// semicolon. It reports a pair with a malformed escape.
func (b *binder) bindQuery(p *plan, in address) {
	rest := b.r.RawQuery() // a string that stays valid, as do its substrings
	var room [16]int8
	seen := room[:]
	if len(p.query) > len(room) {
		seen = make([]int8, len(p.query))
	}
	lists := false
	for rest != "" {
		pair := rest
		if i := strings.IndexByte(rest, '&'); i >= 0 {
			pair, rest = rest[:i], rest[i+1:]
		} else {
			rest = ""
		}
		key, text, _ := strings.Cut(pair, "=")
		i := findQuery(p.query, key)
		if i < 0 || strings.IndexByte(pair, ';') >= 0 {
			continue
		}
		q := p.query[i]
		if q.List {
			lists, seen[i] = true, 1
			continue
		}
		if seen[i]++; seen[i] > 1 {
			if seen[i] == 2 {
				b.wrong(q, "", "single", "")
			}
			seen[i] = 2
			continue
		}
		if plain, ok := unescape(text); ok {
			q.setOne(b, in, plain)
		} else {
			b.wrong(q, "", "format", "uri")
		}
	}
	for i, q := range p.query {
		if seen[i] == 0 {
			q.absent(b, in)
		} else if lists && q.List {
			b.bindQueryList(q, in)
		}
	}
}

// findQuery returns the index of the parameter whose name is key, or -1. key still has its escapes.
func findQuery(params []*Param, key string) int {
	for i, q := range params {
		if q.Name == key {
			return i
		}
	}
	if strings.IndexByte(key, '%') < 0 && strings.IndexByte(key, '+') < 0 {
		return -1
	}
	plain, err := url.QueryUnescape(key)
	if err != nil {
		return -1
	}
	for i, q := range params {
		if q.Name == plain {
			return i
		}
	}
	return -1
}

// unescape decodes percent escapes and plus signs.
func unescape(text string) (string, bool) {
	if strings.IndexByte(text, '%') < 0 && strings.IndexByte(text, '+') < 0 {
		return text, true
	}
	plain, err := url.QueryUnescape(text)
	return plain, err == nil
}

// bindQueryList binds the values of a list.
func (b *binder) bindQueryList(q *Param, in address) {
	var texts []string
	bad, times := false, 0
	for rest := b.r.RawQuery(); rest != ""; {
		var pair string
		pair, rest, _ = strings.Cut(rest, "&")
		key, text, _ := strings.Cut(pair, "=")
		if strings.IndexByte(pair, ';') >= 0 || findQuery([]*Param{q}, key) < 0 {
			continue
		}
		times++
		words := []string{text}
		if q.Comma {
			words = strings.Split(text, ",") // text is still escaped, because an escaped comma is not a separator
		}
		for _, word := range words {
			plain, ok := unescape(word)
			bad = bad || !ok
			texts = append(texts, plain)
		}
	}
	switch {
	case bad:
		b.wrong(q, "", "format", "uri")
	case q.Comma && times > 1:
		b.wrong(q, "", "single", "")
	default:
		q.setList(b, in, texts)
	}
}
