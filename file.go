package dunlin

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/files"
	"github.com/dunlinhttp/dunlin/router"
)

// File answers with the file at path. It opens the file when the response is sent, and answers as
// [FS] describes. It answers 404 to a path with an element «..», so a parameter in path cannot
// leave its directory. Use FS or [Files] for paths chosen by clients.
func File(path string) Response {
	if slices.Contains(strings.FieldsFunc(path, isSeparator), "..") {
		return Error(&ProblemDetails{Status: http.StatusNotFound, Cause: fmt.Errorf("file path %q has an element «..»", path)})
	}
	open := func(name string) (fs.File, error) { return os.Open(name) }
	return fileResponse(fileSource{name: filepath.Base(path), open: files.Opener(open, path)})
}

func isSeparator(c rune) bool { return c == '/' || c == filepath.Separator }

// FS answers with the named file of fsys and follows net/http: ranges (206, 416, several as multipart/byteranges),
// conditional requests (304, 412) and HEAD. The media type is that of the name's extension or, if it is unknown, that of
// the first bytes. For a directory FS serves its index.html. It answers 404 if the file does not exist, and for a name
// that cannot name a file: a name that fs.ValidPath rejects, a path below a file, a too long name, or a path out of an
// os.Root. It answers 403 for a file without read permission.
//
// Last-Modified and ETag are derived from the time and size of the file, unless they were set by
// Header. The response for a file without a time, as in an embed.FS, has neither. With a status other
// than 200, FS sends the complete file and ignores ranges and conditions.
func FS(fsys fs.FS, name string) Response {
	return fileResponse(fileSource{name: name, open: files.Opener(fsys.Open, name)})
}

// Files returns an action that serves the tree of fsys. The last parameter of its pattern is the file name:
//
//	app.Get("/static/{path...}", dunlin.Files(os.DirFS("public")))
//
// It answers as [FS] does and never lists a directory. A request for a directory with an index.html is redirected (308)
// to the path with a trailing slash, and a request for a file to the path without one. A name with an escaped slash (%2F)
// is answered with 404, because routes that guard a part of the tree do not treat %2F as a slash. Names that begin with a
// dot, such as .env and .git, are answered with 404, too, except .well-known; [FS] serves such names. Files without a time,
// as in an embed.FS, are assumed never to change: their ETag is a hash of the content, computed on the first request.
//
// An os.DirFS follows symbolic links out of its tree. If other programs can write to the tree, use
// the FS of an [os.Root], which does not follow such links.
func Files(fsys fs.FS) Action {
	if fsys == nil {
		panic("dunlin: Files: nil file system (called at " + callerPlace() + ")")
	}
	tags := new(files.Tags)
	return func(r *Request) Response {
		asked := ""
		if n := r.match.Len(); n > 0 && !r.match.InHost(n-1) {
			if strings.Contains(r.match.Span(n-1).Of(r.s.Path), "%2F") {
				return NotFound()
			}
			asked = r.paramAt(n - 1)
		}
		name := strings.TrimSuffix(asked, "/")
		if name == "" {
			name = "."
		}
		if files.Hidden(name) {
			return NotFound()
		}
		slash := asked == "" || name != asked
		return fileResponse(fileSource{name: name, open: files.Opener(fsys.Open, name), tags: tags, tree: true, slash: slash})
	}
}

// A fileSource identifies the file to serve.
type fileSource struct {
	name  string // for the media type
	open  func() (f fs.File, index bool, err error)
	tags  *files.Tags // ETags of files without a time, or nil
	tree  bool        // the URL names the file, so relative links matter
	slash bool        // the URL ends with a slash
}

func fileResponse(src fileSource) Response {
	return Empty().producing(src.serve)
}

// serve answers with the file.
func (src fileSource) serve(r *Request, planned *exchange.Answer) Response {
	f, index, err := src.open()
	if err != nil {
		return failLate(planned, fileError(err))
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return failLate(planned, fileError(err))
	case info.IsDir():
		return failLate(planned, fileError(fs.ErrNotExist))
	}
	name := src.name
	if index {
		name = files.IndexPage
	}
	if src.tree && src.slash != index {
		return redirectFile(r, index)
	}
	content, end := files.Seekable(f, info.Size(), src.open)
	defer end()
	w := &fileWriter{stdWriter: newStdWriter(r), as: planned.Status()}
	for name, value := range planned.Headers {
		w.Header().Add(name, value)
	}
	if w.Header().Get("Etag") == "" {
		if tag := src.tags.Of(src.name, content, info); tag != "" {
			w.Header().Set("Etag", tag)
		}
	}
	w.serve(content, name, info)
	return w.answer(planned)
}

// fileError returns the problem for an error of opening a file.
func fileError(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrInvalid), files.NamesNoFile(err):
		return &ProblemDetails{Status: http.StatusNotFound, Cause: err}
	case errors.Is(err, fs.ErrPermission):
		return &ProblemDetails{Status: http.StatusForbidden, Cause: err}
	}
	return err
}

// redirectFile redirects a directory to its path with a slash, where relative links work, and a
// file to its path without one.
func redirectFile(req *Request, directory bool) Response {
	base := string(router.AppendEscaped(nil, path.Base(req.s.Path)))
	to := "../" + base
	if directory {
		to = "./" + base + "/" // the prefix "./" protects a colon in the name
	}
	if req.s.Sent != "" { // the base of the original path may differ
		to = string(router.AppendEscaped(nil, req.app.rewrites.OtherSlash(req.s.Sent, req.s.Path)))
	}
	if query := req.RawQuery(); query != "" {
		to += "?" + query
	}
	return Redirect(to).Status(http.StatusPermanentRedirect)
}

// A fileWriter is the ResponseWriter passed to http.ServeContent.
type fileWriter struct {
	*stdWriter
	as int // the status of the response; if it is 200, ServeContent chooses the status
}

// WriteHeader replaces status 200 with the status of the response.
func (w *fileWriter) WriteHeader(status int) {
	if w.as != http.StatusOK && status == http.StatusOK {
		status = w.as
	}
	w.stdWriter.WriteHeader(status)
}

// conditions are the headers that http.ServeContent reads, except Range.
var conditions = [...]string{"If-Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"}

func (w *fileWriter) serve(content io.ReadSeeker, name string, info fs.FileInfo) {
	defer w.r.cutAfter(w.Begun)
	req := &http.Request{Method: w.r.s.Method, Header: make(http.Header)}
	if w.as == http.StatusOK {
		for _, name := range conditions {
			if v := w.r.HeaderList(name); v != "" {
				req.Header[name] = []string{v}
			}
		}
		req.Header["Range"] = files.Range(req.Method, w.r.HeaderList("Range"), info.Size())
	}
	http.ServeContent(w, req, name, info.ModTime(), content)
}

// answer returns the response of ServeContent, with errors as problems.
func (w *fileWriter) answer(planned *exchange.Answer) Response {
	if status := w.Status(); w.Begun() || status < 400 || status == w.as {
		return w.response()
	}
	problem := failLate(planned, &ProblemDetails{Status: w.Status()})
	if v := w.Header().Get("Content-Range"); v != "" {
		problem = problem.push(exchange.Field{Name: "Content-Range", Value: v}) // the length of the file
	}
	return problem
}
