package middleware

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/dunlinhttp/dunlin"
)

// etag is the header's name in the spelling that net/http would change it to.
const etag = "Etag"

// ETag spares clients the bodies they have: it gives a response the ETag of its
// body and answers 304 Not Modified when If-None-Match names it (RFC 9110
// sections 8.8.3 and 13.1.2). The action still runs; what is saved is the
// transfer.
//
// It looks at GET and HEAD answered with 200. An ETag that the action has set
// stays, strong or weak, and is compared. Otherwise a strong one is made of the
// body, if that is complete and not empty: a stream has none yet, and an
// empty body says nothing about what GET would answer when it comes from an action
// for HEAD.
func ETag() dunlin.Middleware {
	return func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			resp := next(r)
			if m := r.Method(); m != http.MethodGet && m != http.MethodHead || resp.StatusCode() != http.StatusOK {
				return resp
			}
			tag := resp.Get(etag)
			if tag == "" {
				if resp.Len() <= 0 {
					return resp
				}
				tag = strongTag(resp.Body())
				resp = resp.Header(etag, tag)
			}
			if noneMatch(r, tag) {
				return resp
			}
			// The headers stay as they are: a 304 repeats those of the 200
			// (RFC 9110 section 15.4.5), and the engine drops the body.
			return resp.Status(http.StatusNotModified)
		}
	}
}

// strongTag returns the entity tag of a body: 128 bits of its SHA-256, so that two
// bodies never share one, whoever wrote them and on whatever machine.
func strongTag(body []byte) string {
	sum := sha256.Sum256(body)
	var tag [2 + 22]byte // 16 bytes are 22 digits
	tag[0], tag[len(tag)-1] = '"', '"'
	base64.RawURLEncoding.Encode(tag[1:], sum[:16])
	return string(tag[:])
}

// noneMatch reports whether If-None-Match holds, so that the response is to be
// sent in full: none of its entity tags is the one given, by weak comparison.
// Without the header it holds. A list that is malformed counts as far as it
// is well-formed: the price of a mistake is a body sent for nothing.
func noneMatch(r *dunlin.Request, tag string) bool {
	want := opaque(tag)
	first := r.Header("If-None-Match")
	if first == "" {
		return true
	}
	return !listed(first, want) && !listedAnywhere(r, want)
}

// listedAnywhere is listed for all lines of the header: a list may be sent in
// several.
func listedAnywhere(r *dunlin.Request, want string) bool {
	for name, list := range r.Headers() {
		if strings.EqualFold(name, "If-None-Match") && listed(list, want) {
			return true
		}
	}
	return false
}

// listed reports whether the value of an If-None-Match header is "*" or holds the
// quoted string want, weak or strong.
func listed(list, want string) bool {
	if strings.Trim(list, " \t") == "*" {
		return true // any representation, and there is one: the status is 200
	}
	for {
		list = strings.TrimLeft(list, " \t,")
		tag, rest, ok := cutTag(list)
		if !ok {
			return false
		}
		if opaque(tag) == want {
			return true
		}
		list = rest
	}
}

// cutTag splits an entity tag off the front of a list. A tag may hold commas, but
// no quotes (RFC 9110 section 8.8.3).
func cutTag(list string) (tag, rest string, ok bool) {
	quoted := opaque(list)
	if quoted == "" || quoted[0] != '"' {
		return "", "", false
	}
	end := strings.IndexByte(quoted[1:], '"')
	if end < 0 {
		return "", "", false
	}
	end += len(list) - len(quoted) + 2
	return list[:end], list[end:], true
}

// opaque returns an entity tag without the mark of a weak one, which is
// case-sensitive.
func opaque(tag string) string { return strings.TrimPrefix(tag, "W/") }
