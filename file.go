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

// File answers with the file at path. It is opened when the response is sent,
// and answered as [FS] says. A path with «..» among its elements is refused
// with 404, so that a parameter in it cannot lead out of its directory; but for
// paths that clients choose, FS and [Files] are made.
func File(path string) Response {
	if slices.Contains(strings.FieldsFunc(path, isSeparator), "..") {
		return Error(&ProblemDetails{Status: http.StatusNotFound, Cause: fmt.Errorf("file path %q has an element «..»", path)})
	}
	open := func(name string) (fs.File, error) { return os.Open(name) }
	return fileResponse(fileSource{name: filepath.Base(path), open: files.Opener(open, path)})
}

func isSeparator(c rune) bool { return c == '/' || c == filepath.Separator }

// FS answers with the named file of fsys, by the rules of net/http: ranges
// (206, 416, several as multipart/byteranges), conditions (304, 412), HEAD. The
// media type follows from the name, or else from the first bytes. A directory
// stands for its index.html; without one it is not found (404), as is a name that no
// file can have: one that fs.ValidPath does not take, that goes on below a file, that
// is too long, or that leads out of an os.Root. A file that may not be read is 403.
//
// Last-Modified and ETag follow from the file's time and size, unless the
// response has been given others by Header; a file without a time, as in an
// embed.FS, has neither. With another status than 200 the file is answered in
// whole, whatever the request asks.
func FS(fsys fs.FS, name string) Response {
	return fileResponse(fileSource{name: name, open: files.Opener(fsys.Open, name)})
}

// Files returns the action that serves the tree of fsys below a pattern whose
// last parameter is the name:
//
//	app.Get("/static/{path...}", dunlin.Files(os.DirFS("public")))
//
// It answers as [FS] does and never lists a directory. One that is asked for
// without a slash at the end, and has an index.html, is redirected (308), as is a file
// that is asked for with one. A name with an escaped slash (%2F) is not found: other
// routes, which may guard a part of the tree, do not take it for a slash either. Files and
// directories whose names begin with a dot, such as .env and .git, are not found, except for
// .well-known; [FS] serves them. Files without a time, as in an embed.FS, are taken to never change: their ETag is a
// hash of the content, made when a file is first asked for.
//
// An os.DirFS follows symbolic links out of its tree. Where others than the service can write to the tree, use
// the FS of an [os.Root], which does not.
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

// A fileSource says which file to serve.
type fileSource struct {
	name  string // for the media type
	open  func() (f fs.File, index bool, err error)
	tags  *files.Tags // of files without a time, or nil
	tree  bool        // the URL is that of the file: relative links count
	slash bool        // it ends with a slash
}

func fileResponse(src fileSource) Response {
	return Empty().producing(src.serve)
}

// serve answers with the file.
func (src fileSource) serve(r *Request, resp *Response) Response {
	f, index, err := src.open()
	if err != nil {
		return resp.failLate(fileError(err))
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return resp.failLate(fileError(err))
	case info.IsDir():
		return resp.failLate(fileError(fs.ErrNotExist))
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
	w := &fileWriter{stdWriter: newStdWriter(r), as: resp.a.Status()}
	for name, value := range resp.a.Headers {
		w.Header().Add(name, value)
	}
	if w.Header().Get("Etag") == "" {
		if tag := src.tags.Of(src.name, content, info); tag != "" {
			w.Header().Set("Etag", tag)
		}
	}
	w.serve(content, name, info)
	return w.answer(resp)
}

// fileError is the problem of a file that cannot be had.
func fileError(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrInvalid), files.NamesNoFile(err):
		return &ProblemDetails{Status: http.StatusNotFound, Cause: err}
	case errors.Is(err, fs.ErrPermission):
		return &ProblemDetails{Status: http.StatusForbidden, Cause: err}
	}
	return err
}

// redirectFile sends a client that asked for a directory to where relative links work,
// and one that asked for a file as if it were one to the file.
func redirectFile(req *Request, directory bool) Response {
	base := string(router.AppendEscaped(nil, path.Base(req.s.Path)))
	to := "../" + base
	if directory {
		to = "./" + base + "/" // the name may have a colon
	}
	if req.s.Sent != "" { // the base of that may be another one
		to = string(router.AppendEscaped(nil, req.app.rewrites.OtherSlash(req.s.Sent, req.s.Path)))
	}
	if query := req.RawQuery(); query != "" {
		to += "?" + query
	}
	return Redirect(to).Status(http.StatusPermanentRedirect)
}

// A fileWriter is the ResponseWriter that http.ServeContent answers through.
type fileWriter struct {
	*stdWriter
	as int // the status of the response: 200 leaves it to ServeContent
}

// WriteHeader takes the response's own status for that of success.
func (w *fileWriter) WriteHeader(status int) {
	if w.as != http.StatusOK && status == http.StatusOK {
		status = w.as
	}
	w.stdWriter.WriteHeader(status)
}

// conditions are the headers that http.ServeContent reads, but for Range.
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

// answer is what became of it; refusals are problems.
func (w *fileWriter) answer(resp *Response) Response {
	if status := w.Status(); w.Begun() || status < 400 || status == w.as {
		return w.response()
	}
	problem := resp.failLate(&ProblemDetails{Status: w.Status()})
	if v := w.Header().Get("Content-Range"); v != "" {
		problem = problem.push(exchange.Field{Name: "Content-Range", Value: v}) // how long the file is
	}
	return problem
}
