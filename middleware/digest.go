package middleware

import (
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/dunlinhttp/dunlin"
)

// ContentDigestConfig has the settings of [ContentDigest].
type ContentDigestConfig struct {
	// Require refuses a request that has a body without a supported digest, with 400 and
	// Want-Content-Digest. Default: such a request passes.
	Require bool

	// Respond adds a digest to responses with a complete body. Default: no digest is added.
	Respond bool
}

// ContentDigest checks the request body against its Content-Digest (RFC 9530), by SHA-256 or
// SHA-512, and answers 400 if they differ. It reads the whole body, see [dunlin.Request.Bytes]. All
// supported digests of the field must match; other digests are ignored. A digest detects errors, not
// forgeries: an attacker who changes a body can change its digest.
//
// With Respond, put ContentDigest before middleware that changes bodies, such as [Compress], because
// the digest must be that of the sent bytes.
func ContentDigest(c ContentDigestConfig) dunlin.Middleware {
	return func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			if resp, refused := c.check(r); refused {
				return resp
			}
			resp := next(r)
			if !c.Respond || resp.Len() <= 0 || resp.StatusCode() == http.StatusNotModified || resp.Get("Content-Digest") != "" {
				return resp
			}
			return resp.Header("Content-Digest", digestOf(resp.Body()))
		}
	}
}

// digestOf returns the value of Content-Digest for a body.
func digestOf(body []byte) string {
	sum := sha256.Sum256(body)
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
}

var blockWantDigest = dunlin.NewHeaderBlock("Want-Content-Digest", "sha-256=10, sha-512=3")

// check returns the refusal of a request whose digest is wrong or missing.
func (c *ContentDigestConfig) check(r *dunlin.Request) (resp dunlin.Response, refused bool) {
	refuse := func(detail string) (dunlin.Response, bool) {
		return dunlin.Problem(&dunlin.ProblemDetails{Status: http.StatusBadRequest, Detail: detail}).With(blockWantDigest), true
	}
	list := r.HeaderList("Content-Digest")
	if list == "" {
		if c.Require && r.ContentLength() != 0 {
			return refuse("the body has no Content-Digest")
		}
		return resp, false
	}
	digests, ok := parseDigests(list)
	if !ok {
		return refuse("Content-Digest is malformed")
	}
	if digests.sha256 == nil && digests.sha512 == nil {
		if c.Require {
			return refuse("Content-Digest has neither sha-256 nor sha-512")
		}
		return resp, false
	}
	body, err := r.Bytes()
	if err != nil {
		return dunlin.Error(err), true
	}
	if !digests.match(body) {
		return refuse("the body is not that of its Content-Digest")
	}
	return resp, false
}

// A digestSet has the supported digests of a header. A digest that the header does not have is nil.
type digestSet struct{ sha256, sha512 []byte }

func (d *digestSet) match(body []byte) bool {
	if d.sha256 != nil {
		if sum := sha256.Sum256(body); subtle.ConstantTimeCompare(sum[:], d.sha256) == 0 {
			return false
		}
	}
	if d.sha512 != nil {
		if sum := sha512.Sum512(body); subtle.ConstantTimeCompare(sum[:], d.sha512) == 0 {
			return false
		}
	}
	return true
}

// maxDigests is the maximum length of the field, in bytes.
const maxDigests = 1 << 10

// parseDigests parses a dictionary of byte sequences (RFC 8941 section 3.2), such as
// "sha-256=:base64:". If a key is repeated, its last value is used.
func parseDigests(list string) (d digestSet, ok bool) {
	if len(list) > maxDigests {
		return d, false
	}
	for item := range strings.SplitSeq(list, ",") {
		key, value, _ := strings.Cut(strings.Trim(item, " \t"), "=")
		if key == "" || !isToken(key) || key != strings.ToLower(key) {
			return d, false
		}
		if value, _, _ = strings.Cut(value, ";"); len(value) < 2 || value[0] != ':' || value[len(value)-1] != ':' {
			return d, false
		}
		sum, err := base64.StdEncoding.DecodeString(value[1 : len(value)-1])
		if err != nil {
			return d, false
		}
		switch key {
		case "sha-256":
			d.sha256 = sum
		case "sha-512":
			d.sha512 = sum
		}
	}
	return d, true
}
