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

// StaticConfig has the settings of [Static].
type StaticConfig struct {
	// FS has the files: an embed.FS, the FS of an os.Root, or an os.DirFS. The files must not change
	// while they are served. An os.DirFS follows symbolic links out of its tree; with an os.Root such a
	// link is an error of Static.
	FS fs.FS

	// Index is the name of the file that is served for a directory. A request for a directory
	// without a slash at the end is redirected (308) to the path with a slash, so that relative links
	// work. Default: index.html.
	Index string

	// Fallback is the name of the file that is served if a browser navigates to a path without a file.
	// A request is a navigation by its Sec-Fetch-Mode or, without that header, by Accept: text/html.
	// Fallback is for the page of a single-page application (SPA). Default: 404.
	Fallback string

	// Immutable matches the names of files that never change, because their names have a fingerprint
	// of their content. Clients may cache them for a year. Default: names with a part, between dots
	// and hyphens, of at least 8 characters that looks like a hash: lower-case hexadecimal digits, or
	// letters of both cases and digits. Examples are app.4f3a09bc.js and index-BzR3x9Qw.css.
	Immutable *regexp.Regexp

	// MaxAge is the time for which clients may cache other files without revalidation. Default: 0.
	MaxAge time.Duration

	// Hidden serves files and directories whose names begin with a dot. Default: requests for them,
	// except .well-known, are answered with 404.
	Hidden bool
}

// precompressed has the encodings of stored variants, in order of preference.
var precompressed = []struct{ suffix, coding string }{{".zst", "zstd"}, {".br", "br"}, {".gz", "gzip"}}

// An asset is one file of the manifest.
type asset struct {
	name    string              // in the file system
	headers *dunlin.HeaderBlock // the headers of the plain file
	tag     string
	packed  []variant
}

// A variant is an asset in another encoding.
type variant struct {
	name    string
	coding  string
	headers *dunlin.HeaderBlock
}

// Static returns the action that serves the files of a manifest, which Static makes when it is called.
// The ETag of a file is a hash of its content, so all machines send the same ETag. If FS also has a file
// whose name is that of the file followed by .zst, .br or .gz, it is sent to clients that accept this
// encoding, with the headers of the plain file. Clients may cache files with a fingerprint in their names
// for a year. Ranges and conditions are handled as by [dunlin.FS]. A request for a file that is not in
// the manifest is answered with 404.
//
//	assets, err := middleware.Static(middleware.StaticConfig{FS: files, Fallback: "index.html"})
//	app.Get("/{path...}", assets)
//
// The last parameter of the pattern is the name of the file. For a pattern without parameters the path
// is the name. A name with an escaped slash (%2F) is answered with 404. Static reads every file. Its
// error names the file that could not be read.
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
			return nil, fmt.Errorf("static files: open fallback %s: file does not exist", c.Fallback)
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

// toDirectory redirects a request for a directory to its path with a slash at the end.
func toDirectory(r *dunlin.Request, name string) dunlin.Response {
	to := "./" + url.PathEscape(path.Base(name)) + "/" // the name may have a colon
	if query := r.RawQuery(); query != "" {
		to += "?" + query
	}
	return dunlin.Redirect(to).Status(http.StatusPermanentRedirect)
}

// navigation has the fields that navigates reads, for Vary. Without Vary, a cache could send the page in
// response to a request of a script, or a 404 in response to a navigation.
const navigation = "Accept, Sec-Fetch-Mode"

// asked returns the name of the requested file. It reports false if the name has an escaped slash
// (%2F), because a route that guards a part of the tree does not match such a path.
func asked(r *dunlin.Request) (name string, ok bool) {
	path, pattern := r.Path(), r.Route()
	if !strings.Contains(pattern, "{") {
		return strings.ReplaceAll(path, "%25", "%"), !strings.Contains(path, "%2F")
	}
	earlier := 0 // number of slashes in earlier parameters; in the path they are all escaped
	for _, value := range r.Params() {
		earlier += strings.Count(name, "/")
		name = value
	}
	if !strings.Contains(path, "%2F") {
		return name, true
	}
	// The text of the pattern may also have escaped slashes.
	return name, strings.Count(path, "%2F") == earlier+strings.Count(strings.ToUpper(pattern), "%2F")
}

// navigates reports whether a request is a navigation of a browser.
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

// A manifest has the assets by requested name.
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
		info, err := fs.Stat(c.FS, name) // of the target of a link
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

// sumOf returns the hash of a file in the form of its entity tag, without quotes.
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

// asset makes the manifest entry of a file.
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
		cache = "no-cache" // clients may store the file, but must revalidate it before each use
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

// hasFingerprint reports whether a part of the name looks like a hash. A date or a version does not
// look like a hash.
func hasFingerprint(name string) bool {
	parts := strings.FieldsFunc(path.Base(name), func(c rune) bool { return c == '.' || c == '-' })
	for i, part := range parts {
		if i == 0 || i == len(parts)-1 || len(part) < 8 {
			continue
		}
		var digit, lower, upper, beyond bool // beyond: a letter after f
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

// serve answers with the file in the encoding that the client prefers.
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
			return dunlin.FS(fsys, p.name).With(p.headers)
		}
	}
	return dunlin.FS(fsys, a.name).With(a.headers)
}

// accepts returns the weight of a coding in Accept-Encoding, or 0 if the client does not accept it (RFC
// 9110 section 12.5.3).
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

// acceptsIdentity returns the weight of the plain body if Accept-Encoding states it. Otherwise it
// returns 0, so that encoded variants are preferred.
func acceptsIdentity(accept string) float64 {
	for item := range strings.SplitSeq(accept, ",") {
		if name, params, _ := strings.Cut(item, ";"); strings.EqualFold(strings.TrimSpace(name), "identity") {
			return quality(params)
		}
	}
	return 0
}
