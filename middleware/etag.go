package middleware

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/dunlinhttp/dunlin"
)

// etag is the header's name in the canonical spelling of net/http.
const etag = "Etag"

// ETag adds an ETag to responses, and answers 304 Not Modified if If-None-Match has it (RFC 9110
// sections 8.8.3 and 13.1.2). The action still runs; only the transfer is saved.
//
// It handles responses to GET and HEAD with status 200. An ETag that the action has set, strong or
// weak, is kept and compared. Otherwise the middleware computes a strong ETag from the body, if the
// body is complete and not empty. A stream has no complete body. The empty body of an action for HEAD
// may differ from the body for GET.
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
			// The headers do not change: a 304 has the headers of the 200 (RFC 9110 section 15.4.5).
			// The engine does not send the body.
			return resp.Status(http.StatusNotModified)
		}
	}
}

// strongTag returns the entity tag of a body: 128 bits of its SHA-256. Different bodies have
// different tags, and all machines compute the same tag for the same body.
func strongTag(body []byte) string {
	sum := sha256.Sum256(body)
	var tag [2 + 22]byte // 16 bytes are 22 digits
	tag[0], tag[len(tag)-1] = '"', '"'
	base64.RawURLEncoding.Encode(tag[1:], sum[:16])
	return string(tag[:])
}

// noneMatch reports whether If-None-Match is absent or lists no tag that matches the given tag by weak
// comparison. Then the whole response must be sent. If the list is malformed, only its well-formed
// beginning is used; at worst a body is sent unnecessarily.
func noneMatch(r *dunlin.Request, tag string) bool {
	want := opaque(tag)
	first := r.Header("If-None-Match")
	if first == "" {
		return true
	}
	return !listed(first, want) && !listedAnywhere(r, want)
}

// listedAnywhere is listed for all lines of the header.
func listedAnywhere(r *dunlin.Request, want string) bool {
	for name, list := range r.Headers() {
		if strings.EqualFold(name, "If-None-Match") && listed(list, want) {
			return true
		}
	}
	return false
}

// listed reports whether the value of an If-None-Match header is "*" or has the quoted string want,
// weak or strong.
func listed(list, want string) bool {
	if strings.Trim(list, " \t") == "*" {
		return true // every response with status 200 matches
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

// cutTag splits an entity tag off the front of a list. A tag may contain commas, but no quotes (RFC
// 9110 section 8.8.3).
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

// opaque returns an entity tag without the prefix of weak tags, which is case-sensitive.
func opaque(tag string) string { return strings.TrimPrefix(tag, "W/") }
