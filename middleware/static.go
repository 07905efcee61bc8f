package middleware

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// StaticConfig says what files there are and how they are served.
type StaticConfig struct {
	// FS has the files: an embed.FS, the FS of an os.Root, an os.DirFS. They must not change
	// while they are served. An os.DirFS follows symbolic links out of its tree; with an os.Root such a link is an error of Static.
	FS fs.FS

	// Index is the file that a directory stands for. One that is asked for without a slash at the end is redirected (308) to itself with it, where
	// relative links work. Default: index.html.
	Index string

	// Fallback, the name of a file, is what is served for paths without a file that a browser navigates to
	// (Sec-Fetch-Mode, or else Accept: text/html): the page of an app that finds its way by itself (SPA). Default: 404.
	Fallback string

	// Immutable matches the names of files that never change because their names do, by a
	// fingerprint of their content: they may be kept for a year without asking. Default: names with a part, between
	// dots and hyphens, of 8 or more hexadecimal digits in small letters, or of letters of both cases and digits, as in
	// app.4f3a09bc.js and index-BzR3x9Qw.css.
	Immutable *regexp.Regexp

	// MaxAge is for how long other files may be kept without asking whether they have changed. Default: 0.
	MaxAge time.Duration

	// Hidden serves files whose names, or directories', begin with a dot. Default: they are not
	// found, but for .well-known.
	Hidden bool
}

// precompressed are the encodings of files that lie beside others, the best first.
var precompressed = []struct{ suffix, coding string }{{".zst", "zstd"}, {".br", "br"}, {".gz", "gzip"}}

// asset is one file of the manifest.
type asset struct {
	name    string              // in the file system
	headers *dunlin.HeaderBlock // of the file as it is
	tag     string
	packed  []variant
}

// variant is an asset in another encoding.
type variant struct {
	name    string
	coding  string
	headers *dunlin.HeaderBlock
}

// Static returns the action that serves files from a manifest, which it makes once, here: the tag (ETag) of each file
// is a hash of its content, so that all machines have the same and a file that has not changed is not sent again;
// files that lie beside others with .zst, .br or .gz at the end are sent to clients that
// accept that, with the headers of the plain one; those with a fingerprint in their names may be kept for ever.
// Ranges and conditions are answered as [dunlin.FS] does. What is not in the manifest does not exist, whatever the
// path says.
//
//	assets, err := middleware.Static(middleware.StaticConfig{FS: files, Fallback: "index.html"})
//	app.Get("/{path...}", assets)
//
// The last parameter of the pattern is the name; without a parameter it is the path. A name with an escaped slash (%2F) is not found. Static
// reads every file. The error names the one that could not be read.
func Static(c StaticConfig) (dunlin.Action, error) {
	if c.FS == nil {
		panic("middleware: Static: nil FS")
	}
	if c.Index == "" {
		c.Index = "index.html"
	}
	m, err := c.manifest()
	if err != nil {
		return nil, fmt.Errorf("static files: %w", err)
	}
	var fallback *asset
	if c.Fallback != "" {
		if fallback = m[c.Fallback]; fallback == nil {
			return nil, fmt.Errorf("static files: there is no %s to fall back to", c.Fallback)
		}
	}
	return func(r *dunlin.Request) dunlin.Response {
		if name, ok := asked(r); ok {
			if a := m.find(name, c.Index); a != nil {
				return a.serve(c.FS, r)
			}
			if m.find(name+"/", c.Index) != nil && r.SentPath() == r.Path() {
				return toDirectory(r, name)
			}
		}
		switch {
		case fallback == nil:
			return dunlin.NotFound()
		case navigates(r):
			return fallback.serve(c.FS, r).AddHeader("Vary", navigation)
		}
		return dunlin.NotFound().Header("Vary", navigation)
	}, nil
}

// toDirectory sends a client that asked for a directory to where relative links work.
func toDirectory(r *dunlin.Request, name string) dunlin.Response {
	to := "./" + url.PathEscape(path.Base(name)) + "/" // the name may have a colon
	if query := r.RawQuery(); query != "" {
		to += "?" + query
	}
	return dunlin.Redirect(to).Status(http.StatusPermanentRedirect)
}

// navigation is what navigates goes by: a cache in front is not to send a page to who wants a script, nor a 404 to who navigates.
const navigation = "Accept, Sec-Fetch-Mode"

// asked returns the name that a request asks for. There is none where a slash of it is escaped (%2F): other routes, which may guard
// a part of the tree, do not take it for a slash either.
func asked(r *dunlin.Request) (name string, ok bool) {
	path, pattern := r.Path(), r.Route()
	if !strings.Contains(pattern, "{") {
		return strings.ReplaceAll(path, "%25", "%"), !strings.Contains(path, "%2F")
	}
	earlier := 0 // slashes in the parameters before the last, which are all escaped; those of a host have none
	for _, value := range r.Params() {
		earlier += strings.Count(name, "/")
		name = value
	}
	if !strings.Contains(path, "%2F") {
		return name, true
	}
	// Beside the parameters, the text of the pattern may have some.
	return name, strings.Count(path, "%2F") == earlier+strings.Count(strings.ToUpper(pattern), "%2F")
}

// navigates reports whether a browser wants a page to show.
func navigates(r *dunlin.Request) bool {
	if m := r.Method(); m != http.MethodGet && m != http.MethodHead {
		return false
	}
	if mode := r.Header("Sec-Fetch-Mode"); mode != "" {
		return mode == "navigate"
	}
	for item := range strings.SplitSeq(r.HeaderList("Accept"), ",") {
		kind, _, _ := strings.Cut(item, ";")
		if strings.EqualFold(strings.TrimSpace(kind), "text/html") {
			return true
		}
	}
	return false
}

// manifest has the assets by the names that are asked for.
type manifest map[string]*asset

func (m manifest) find(name, index string) *asset {
	name = strings.TrimPrefix(name, "/")
	if name == "" || strings.HasSuffix(name, "/") {
		name += index
	}
	return m[name]
}

// manifest reads all files.
func (c *StaticConfig) manifest() (manifest, error) {
	m := make(manifest)
	sums := make(map[string]string)
	err := fs.WalkDir(c.FS, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !c.Hidden && name != "." && strings.HasPrefix(d.Name(), ".") && d.Name() != ".well-known":
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			return nil
		}
		info, err := fs.Stat(c.FS, name) // of what a link leads to
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		sum, err := sumOf(c.FS, name)
		sums[name] = sum
		return err
	})
	if err != nil {
		return nil, err
	}
	for name, sum := range sums {
		a, err := c.asset(name, sum, sums)
		if err != nil {
			return nil, err
		}
		m[name] = a
	}
	return m, nil
}

// sumOf returns the hash of a file as an entity tag has it, without the quotes.
func sumOf(fsys fs.FS, name string) (sum string, err error) {
	f, err := fsys.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16]), nil
}

// asset makes the entry of a file.
func (c *StaticConfig) asset(name, sum string, all map[string]string) (*asset, error) {
	kind := mime.TypeByExtension(path.Ext(name))
	if kind == "" {
		var err error
		if kind, err = sniff(c.FS, name); err != nil {
			return nil, err
		}
	}
	cache := fmt.Sprintf("public, max-age=%d", int64(c.MaxAge/time.Second))
	switch {
	case c.Immutable == nil && hasFingerprint(name), c.Immutable != nil && c.Immutable.MatchString(name):
		cache = "public, max-age=31536000, immutable"
	case c.MaxAge <= 0:
		cache = "no-cache" // it may be kept, and must be asked about
	}
	a := &asset{name: name, tag: `"` + sum + `"`}
	common := []string{"Content-Type", kind, "Cache-Control", cache}
	var packed []variant
	for _, p := range precompressed {
		if other, ok := all[name+p.suffix]; ok {
			packed = append(packed, variant{name: name + p.suffix, coding: p.coding, headers: dunlin.NewHeaderBlock(
				append(common[:len(common):len(common)], "Etag", `"`+other+`"`, "Content-Encoding", p.coding, "Vary", "Accept-Encoding")...)})
		}
	}
	a.packed = packed
	if len(packed) > 0 {
		common = append(common, "Vary", "Accept-Encoding")
	}
	a.headers = dunlin.NewHeaderBlock(append(common, "Etag", a.tag)...)
	return a, nil
}

// hasFingerprint reports whether a part of the file's name looks as if it were a hash; a date or a version does not.
func hasFingerprint(name string) bool {
	parts := strings.FieldsFunc(path.Base(name), func(c rune) bool { return c == '.' || c == '-' })
	for i, part := range parts {
		if i == 0 || i == len(parts)-1 || len(part) < 8 {
			continue
		}
		var digit, lower, upper, beyond bool // beyond f
		for _, c := range part {
			switch {
			case '0' <= c && c <= '9':
				digit = true
			case 'a' <= c && c <= 'z':
				lower, beyond = true, beyond || c > 'f'
			case 'A' <= c && c <= 'Z':
				upper = true
			default:
				return false
			}
		}
		if digit && lower && (upper || !beyond) {
			return true
		}
	}
	return false
}

// sniff returns the media type by the first bytes of a file.
func sniff(fsys fs.FS, name string) (kind string, err error) {
	f, err := fsys.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	first := make([]byte, 512)
	n, err := io.ReadFull(f, first)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	return http.DetectContentType(first[:n]), nil
}

// serve answers with the file, in the best encoding that the client accepts.
func (a *asset) serve(fsys fs.FS, r *dunlin.Request) dunlin.Response {
	if len(a.packed) > 0 {
		accept := r.HeaderList("Accept-Encoding")
		best, most := -1, 0.0
		for i, p := range a.packed {
			if q := accepts(accept, p.coding); q > most {
				best, most = i, q
			}
		}
		if best >= 0 && most >= acceptsIdentity(accept) {
			p := a.packed[best]
			return dunlin.FS(fsys, p.name).Headers(p.headers)
		}
	}
	return dunlin.FS(fsys, a.name).Headers(a.headers)
}

// accepts returns the weight that Accept-Encoding gives a coding, 0 for none (RFC 9110 section 12.5.3).
func accepts(accept, coding string) float64 {
	rest := 0.0
	for item := range strings.SplitSeq(accept, ",") {
		name, params, _ := strings.Cut(item, ";")
		switch name = strings.TrimSpace(name); {
		case strings.EqualFold(name, coding), coding == "gzip" && strings.EqualFold(name, "x-gzip"):
			return quality(params)
		case name == "*":
			rest = quality(params)
		}
	}
	return rest
}

// acceptsIdentity returns the weight of the plain body where that is said, else 0: what is encoded goes before it.
func acceptsIdentity(accept string) float64 {
	for item := range strings.SplitSeq(accept, ",") {
		if name, params, _ := strings.Cut(item, ";"); strings.EqualFold(strings.TrimSpace(name), "identity") {
			return quality(params)
		}
	}
	return 0
}
