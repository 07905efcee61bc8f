package middleware

import (
	"strconv"
	"strings"
)

// choose returns the coding that Accept-Encoding prefers (RFC 9110 section 12.5.3), or nil for the
// plain body. codings has the server's preference order. Without the header choose returns nil, because
// every client can read the plain body.
func choose(accept string, codings []*Coding) *Coding {
	if accept == "" {
		return nil
	}
	var best *Coding
	most := max(weight(accept, "identity"), 0)
	for _, c := range codings {
		w := weight(accept, c.Name)
		if c.Name == "gzip" {
			w = max(w, weight(accept, "x-gzip"))
		}
		if w == unlisted {
			w = weight(accept, "*")
		}
		if w > 0 && (w > most || w == most && best == nil) {
			best, most = c, w
		}
	}
	return best
}

// unlisted is the weight of a coding that Accept-Encoding does not name.
const unlisted = -1.0

// weight returns the greatest weight of a name in a list, or unlisted.
func weight(list, name string) float64 {
	w := unlisted
	for item := range strings.SplitSeq(list, ",") {
		coding, params, _ := strings.Cut(item, ";")
		if strings.EqualFold(strings.TrimSpace(coding), name) {
			w = max(w, quality(params))
		}
	}
	return w
}

// quality returns the value of the parameter q (RFC 9110 section 12.4.2): 1 if there is no q, and 0
// if it is malformed.
func quality(params string) float64 {
	for param := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(param), "=")
		if !strings.EqualFold(name, "q") {
			continue
		}
		q, err := strconv.ParseFloat(value, 64)
		if err != nil || !(q >= 0 && q <= 1) {
			return 0
		}
		return q
	}
	return 1
}
