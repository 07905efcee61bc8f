package router

import (
	"cmp"
	"slices"
	"strings"
)

// This file selects versions by media type. A route with version v2 is for requests whose Accept header names v2 in a vendor
// media type such as application/vnd.acme.v2+json. The version is a part of the subtype, between dots, that begins with v and
// a digit. The name of the vendor is ignored. A header may name several versions. Among those that exist, the version with the
// highest quality is selected, and among equal qualities the newest.
//
// If the header names no version, or if none of the named versions exists but the header also accepts another media type (*/*,
// application/json), the request gets the route without a version. If no such route exists, it gets the newest version. If all
// routes of a leaf have no version, Accept is ignored.

// isVersion reports whether s is a version: v and a digit, then any number of letters, digits, _ or -.
func isVersion(s string) bool {
	if len(s) < 2 || s[0]|0x20 != 'v' || !isDigit(s[1]) {
		return false
	}
	for i := 2; i < len(s); i++ {
		if c := s[i]; !isAlpha(c) && !isDigit(c) && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// compareVersions orders versions by number, then by suffix: v2 < v10 < v10beta.
func compareVersions(a, b string) int {
	if a == "" || b == "" {
		return cmp.Compare(len(a), len(b))
	}
	x, y := versionDigits(a), versionDigits(b)
	return cmp.Or(
		cmp.Compare(len(x), len(y)),
		strings.Compare(x, y),
		strings.Compare(a, b),
	)
}

// versionDigits returns the digits of a version without leading zeros.
func versionDigits(v string) string {
	end := 1
	for end < len(v) && isDigit(v[end]) {
		end++
	}
	return strings.TrimLeft(v[1:end], "0")
}

// An acceptance is the set of versions that an Accept header accepts.
type acceptance struct {
	named bool // the header names a version, perhaps with quality 0
	open  bool // the header has a media range that names no version and has a quality above 0
}

// scanAccept parses an Accept header and returns the quality of a version in thousandths, or 0 if the header does not name the
// version.
func scanAccept(accept, version string) (quality int, a acceptance) {
	for len(accept) > 0 {
		var element string
		element, accept, _ = strings.Cut(accept, ",")
		mediaType, params, _ := strings.Cut(element, ";")
		mediaType = strings.Trim(mediaType, " \t")
		if mediaType == "" {
			continue
		}
		q := qualityOf(params)
		if named, match := versionIn(mediaType, version); !named {
			a.open = a.open || q > 0
		} else {
			a.named = true
			if match {
				quality = max(quality, q)
			}
		}
	}
	return quality, a
}

// versionIn reports whether a media type names a version, and whether it names the given version.
func versionIn(mediaType, version string) (named, match bool) {
	_, subtype, _ := strings.Cut(mediaType, "/")
	const vendor = "vnd."
	if len(subtype) < len(vendor) || !strings.EqualFold(subtype[:len(vendor)], vendor) {
		return false, false
	}
	subtype, _, _ = strings.Cut(subtype[len(vendor):], "+")
	for more := true; more; {
		var part string
		part, subtype, more = strings.Cut(subtype, ".")
		if isVersion(part) {
			return true, strings.EqualFold(part, version)
		}
	}
	return false, false
}

// qualityOf returns the parameter q in thousandths (RFC 9110 section 12.4.2): 1000 if q is absent, and 0 if q is malformed.
func qualityOf(params string) int {
	for len(params) > 0 {
		var param string
		param, params, _ = strings.Cut(params, ";")
		name, value, _ := strings.Cut(param, "=")
		if !strings.EqualFold(strings.Trim(name, " \t"), "q") {
			continue
		}
		value = strings.Trim(value, " \t")
		if value == "" || len(value) > len("0.000") || value[0] != '0' && value[0] != '1' || len(value) > 1 && value[1] != '.' {
			return 0
		}
		q, unit := int(value[0]-'0')*1000, 100
		for i := 2; i < len(value); i++ {
			if !isDigit(value[i]) {
				return 0
			}
			q += int(value[i]-'0') * unit
			unit /= 10
		}
		return min(q, 1000)
	}
	return 1000
}

// versionBinding does the work of bindingOf for a leaf with versions. The bindings are sorted with the newest version first.
func (w *walk) versionBinding(l *leaf) *binding {
	var best, plain, newest *binding
	bestQuality := 0
	var asked acceptance
	for i := range l.bindings {
		b := &l.bindings[i]
		if b.methods&w.method == 0 {
			continue
		}
		if b.route.version == "" {
			if plain == nil {
				plain = b
			}
			continue
		}
		if newest == nil {
			newest = b
		}
		var quality int
		quality, asked = scanAccept(w.accept, b.route.version)
		if quality > bestQuality {
			best, bestQuality = b, quality
		}
	}
	w.s.varies = w.s.varies || newest != nil
	switch {
	case best == nil && newest == nil && plain == nil:
		w.s.missMethod(l)
		return nil
	case best != nil:
	case newest == nil:
		best = plain
	case asked.named && !asked.open:
		w.s.missVersion(l)
		return nil
	case plain != nil:
		best = plain
	default:
		best = newest
	}
	return best
}

// mergeVersions returns the union of two sorted lists.
func mergeVersions(a, b []string) []string {
	union := slices.Concat(a, b)
	slices.SortFunc(union, compareVersions)
	return slices.Compact(union)
}
