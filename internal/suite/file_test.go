package suite

import (
	"archive/zip"
	"bufio"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/invariants"
)

var fileTime = time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)

const fileTimeText = "Mon, 06 May 2024 07:08:09 GMT"

// makeFiles makes a directory of files, all of fileTime.
func makeFiles(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "public")
	for name, content := range map[string]string{
		"a.txt": "0123456789", "b.css": "p{}", "noext": "<html>x", "sub/index.html": "<p>sub", "bare/x.txt": "x",
		"big.bin": strings.Repeat("0123456789abcdef", 20_000), "../secret.txt": "secret", "closed.txt": "closed", "404.html": "<p>gone",
		"100%/index.html": "<p>100", "a:b c/index.html": "<p>a:b", "odd/index.html/index.html": "<p>odd", ".hidden": "hidden", ".git/config": "hidden", ".git/index.html": "hidden", "sub/.env": "hidden",
		".well-known/security.txt": "shown", "guarded/x.txt": "guarded",
	} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, fileTime, fileTime); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"around": "around", "out.txt": "../secret.txt"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// denyFS refuses one file, as the system does if permissions are missing.
type denyFS struct{ fs.FS }

func (d denyFS) Open(name string) (fs.File, error) {
	if name == "closed.txt" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return d.FS.Open(name)
}

func registerFiles(t *testing.T) func(*dunlin.App) {
	dir := makeFiles(t)
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	f, err := z.CreateHeader(&zip.FileHeader{Name: "z.txt", Method: zip.Deflate, Modified: fileTime})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(f, "0123456789")
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	zipped, err := zip.NewReader(bytes.NewReader(archive.Bytes()), int64(archive.Len()))
	if err != nil {
		t.Fatal(err)
	}
	timeless := fstest.MapFS{"t.txt": {Data: []byte("0123456789")}}
	return func(app *dunlin.App) {
		app.Get("/probe", Text("probe"))
		app.Get("/tree/{path...}", dunlin.Files(denyFS{os.DirFS(dir)}))
		app.Get("/tree/guarded/{path...}", func(*dunlin.Request) dunlin.Response {
			return dunlin.Problem(&dunlin.ProblemDetails{Status: http.StatusForbidden})
		})
		app.Get("/root/{path...}", dunlin.Files(root.FS()))
		app.Get("/zip/{path...}", dunlin.Files(zipped))
		app.Get("/timeless/{path...}", dunlin.Files(timeless))
		app.Get("/timeless one", func(*dunlin.Request) dunlin.Response { return dunlin.FS(timeless, "t.txt") })
		app.Get("/file/{name}", func(r *dunlin.Request) dunlin.Response {
			return dunlin.File(dir+"/"+r.Param("name")).Header("X-A", "1")
		})
		app.Get("/own", func(*dunlin.Request) dunlin.Response {
			return dunlin.FS(os.DirFS(dir), "a.txt").Header("Etag", `"own"`).Header("Content-Type", "text/x")
		})
		app.Get("/gone", func(*dunlin.Request) dunlin.Response { return dunlin.File(dir + "/404.html").Status(404) })
	}
}

// etagOf is the ETag of a file of fileTime and the given size.
func etagOf(size int64) string {
	return fmt.Sprintf(`"%s-%s"`, base36(fileTime.UnixNano()), base36(size))
}

func base36(n int64) string {
	var b []byte
	for ; n > 0; n /= 36 {
		b = append([]byte{"0123456789abcdefghijklmnopqrstuvwxyz"[n%36]}, b...)
	}
	return string(b)
}

func TestFiles(t *testing.T) {
	const digits = "0123456789"
	big := strings.Repeat("0123456789abcdef", 20_000)
	ok := func(status, kind, body string, size int64, extra ...string) string {
		lines := append([]string{"HTTP/1.1 " + status, "Accept-Ranges: bytes", fmt.Sprintf("Content-Length: %d", len(body))}, extra...)
		return strings.Join(append(lines, "Content-Type: "+kind, "Etag: "+etagOf(size), "Last-Modified: "+fileTimeText, "", body), "\n")
	}
	const plainText = "text/plain; charset=utf-8"
	notModified := "HTTP/1.1 304 Not Modified\nEtag: " + etagOf(10) + "\n\n"
	malformed := Problem("416 Requested Range Not Satisfiable", `{"title":"Requested Range Not Satisfiable","status":416}`)
	unsatisfied := strings.Replace(malformed, "\nContent-Type", "\nContent-Range: bytes */10\nContent-Type", 1)
	forbidden := Problem("403 Forbidden", `{"title":"Forbidden","status":403}`)
	redirect := func(to string) string {
		return "HTTP/1.1 308 Permanent Redirect\nContent-Length: 0\nLocation: " + to + "\n\n"
	}
	cases := []Case{
		{Name: "whole", Send: Request("GET /tree/a.txt"), Want: ok("200 OK", plainText, digits, 10)},
		{Name: "HEAD", Send: Request("HEAD /tree/a.txt"), Want: strings.TrimSuffix(ok("200 OK", plainText, digits, 10), digits)},
		{Name: "media type", Send: Request("GET /tree/b.css"), Want: ok("200 OK", "text/css; charset=utf-8", "p{}", 3)},
		{Name: "media type by content", Send: Request("GET /tree/noext"), Want: ok("200 OK", "text/html; charset=utf-8", "<html>x", 7)},
		{Name: "large", Send: Request("GET /tree/big.bin"), Want: ok("200 OK", "application/octet-stream", big, 320_000)},
		{Name: "HTTP/1.0", Send: "GET /tree/big.bin HTTP/1.0\r\n\r\n", Want: strings.Replace(ok("200 OK", "application/octet-stream", big, 320_000), "1.1", "1.0", 1), Closes: true},
		{Name: "range", Send: Request("GET /tree/a.txt", "Range: bytes=2-4"), Want: strings.Replace(ok("206 Partial Content", plainText, "234", 10), "\nContent-Type", "\nContent-Range: bytes 2-4/10\nContent-Type", 1)},
		{Name: "range at the end", Send: Request("GET /tree/a.txt", "Range: bytes=-3"), Want: strings.Replace(ok("206 Partial Content", plainText, "789", 10), "\nContent-Type", "\nContent-Range: bytes 7-9/10\nContent-Type", 1)},
		{Name: "large range", Send: Request("GET /tree/big.bin", "Range: bytes=16-160015"),
			Want: strings.Replace(ok("206 Partial Content", "application/octet-stream", big[16:160016], 320_000), "\nContent-Type", "\nContent-Range: bytes 16-160015/320000\nContent-Type", 1)},
		{Name: "range beyond", Send: Request("GET /tree/a.txt", "Range: bytes=10-"), Want: unsatisfied},
		{Name: "range of nothing", Send: Request("GET /tree/a.txt", "Range: bytes=-0"), Want: unsatisfied},
		{Name: "range in capital letters, to beyond all numbers", Send: Request("GET /tree/a.txt", "Range: BYTES=7-99999999999999999999"), Want: strings.Replace(ok("206 Partial Content", plainText, "789", 10), "\nContent-Type", "\nContent-Range: bytes 7-9/10\nContent-Type", 1)},
		{Name: "range in other units", Send: Request("GET /tree/a.txt", "Range: lines=1-2"), Want: ok("200 OK", plainText, digits, 10)},
		{Name: "range the wrong way round", Send: Request("GET /tree/a.txt", "Range: bytes=4-2"), Want: malformed},
		{Name: "range of HEAD", Send: Request("HEAD /tree/a.txt", "Range: bytes=2-4"), Want: strings.TrimSuffix(ok("200 OK", plainText, digits, 10), digits)},
		{Name: "If-None-Match of two lines", Send: Request("GET /tree/a.txt", `If-None-Match: "x"`, "If-None-Match: "+etagOf(10)), Want: notModified},
		{Name: "If-None-Match", Send: Request("GET /tree/a.txt", "If-None-Match: W/"+etagOf(10)), Want: notModified},
		{Name: "If-Modified-Since", Send: Request("GET /tree/a.txt", "If-Modified-Since: "+fileTimeText), Want: notModified},
		{Name: "If-None-Match of another", Send: Request("GET /tree/a.txt", `If-None-Match: "x"`), Want: ok("200 OK", plainText, digits, 10)},
		{Name: "If-Match of another", Send: Request("GET /tree/a.txt", `If-Match: "x"`), Want: Problem("412 Precondition Failed", `{"title":"Precondition Failed","status":412}`)},
		{Name: "If-Range", Send: Request("GET /tree/a.txt", "Range: bytes=0-0", "If-Range: "+etagOf(10)), Want: strings.Replace(ok("206 Partial Content", plainText, "0", 10), "\nContent-Type", "\nContent-Range: bytes 0-0/10\nContent-Type", 1)},
		{Name: "If-Range of another", Send: Request("GET /tree/a.txt", "Range: bytes=0-0", `If-Range: "x"`), Want: ok("200 OK", plainText, digits, 10)},
		{Name: "index", Send: Request("GET /tree/sub/"), Want: ok("200 OK", "text/html; charset=utf-8", "<p>sub", 6)},
		{Name: "directory without a slash", Send: Request("GET /tree/sub?q=1"), Want: redirect("./sub/?q=1")},
		{Name: "directory with a percent sign", Send: Request("GET /tree/100%25"), Want: redirect("./100%25/")},
		{Name: "directory with a colon", Send: Request("GET /tree/a:b%20c"), Want: redirect("./a:b%20c/")},
		{Name: "directory with a percent sign and a slash", Send: Request("GET /tree/100%25/"), Want: ok("200 OK", "text/html; charset=utf-8", "<p>100", 6)},
		{Name: "directory named as an index", Send: Request("GET /tree/odd/index.html/"), Want: ok("200 OK", "text/html; charset=utf-8", "<p>odd", 6)},
		{Name: "directory for an index", Send: Request("GET /tree/odd/"), Want: Problem404},
		{Name: "file with a slash", Send: Request("GET /tree/a.txt/?q=1"), Want: redirect("../a.txt?q=1")},
		{Name: "dot file", Send: Request("GET /tree/.hidden"), Want: Problem404},
		{Name: "escaped dot file", Send: Request("GET /tree/%2ehidden"), Want: Problem404},
		{Name: "dot file below", Send: Request("GET /tree/sub/.env"), Want: Problem404},
		{Name: "below a dot directory", Send: Request("GET /tree/.git/config"), Want: Problem404},
		{Name: "dot directory", Send: Request("GET /tree/.git/"), Want: Problem404},
		{Name: "dot directory without a slash", Send: Request("GET /tree/.git"), Want: Problem404},
		{Name: "well-known file", Send: Request("GET /tree/.well-known/security.txt"), Want: ok("200 OK", "text/plain; charset=utf-8", "shown", 5)},
		{Name: "below a file", Send: Request("GET /tree/a.txt/x"), Want: Problem404},
		{Name: "name too long", Send: Request("GET /tree/" + strings.Repeat("x", 300)), Want: Problem404},
		{Name: "path too long", Send: Request("GET /tree/" + strings.Repeat("x/", 5000)), Want: Problem404},
		{Name: "links that go around", Send: Request("GET /tree/around"), Want: Problem404},
		{Name: "NUL in a root", Send: Request("GET /root/a.txt%00"), Want: Problem404},
		{Name: "name too long in a root", Send: Request("GET /root/" + strings.Repeat("x", 300)), Want: Problem404},
		{Name: "below a file in a root", Send: Request("GET /root/a.txt/x"), Want: Problem404},
		{Name: "link out of a root", Send: Request("GET /root/out.txt"), Want: Problem404},
		{Name: "link out of a directory", Send: Request("GET /tree/out.txt"), Want: ok("200 OK", plainText, "secret", 6)},
		{Name: "escaped slash", Send: Request("GET /tree/guarded%2fx.txt"), Want: Problem404},
		{Name: "escaped slash at the end", Send: Request("GET /tree/sub%2F"), Want: Problem404},
		{Name: "guarded", Send: Request("GET /tree/guarded/x.txt"), Want: Problem("403 Forbidden", `{"title":"Forbidden","status":403}`)},
		{Name: "escaped letters of a guarded path", Send: Request("GET /tree/%67uarded/x.txt"), Want: Problem("403 Forbidden", `{"title":"Forbidden","status":403}`)},
		{Name: "backslash", Send: Request("GET /tree/guarded%5cx.txt"), Want: Problem404},
		{Name: "File: name too long", Send: Request("GET /file/" + strings.Repeat("x", 300)), Want: strings.Replace(Problem404, "\n\n", "\nX-A: 1\n\n", 1)},
		{Name: "File: NUL", Send: Request("GET /file/a%00"), Want: strings.Replace(Problem404, "\n\n", "\nX-A: 1\n\n", 1)},
		{Name: "directory without an index", Send: Request("GET /tree/bare/"), Want: Problem404},
		{Name: "root without an index", Send: Request("GET /tree/"), Want: Problem404},
		{Name: "missing", Send: Request("GET /tree/nope.txt"), Want: Problem404},
		{Name: "forbidden", Send: Request("GET /tree/closed.txt"), Want: forbidden},
		{Name: "escaped traversal", Send: Request("GET /tree/..%2fsecret.txt"), Want: Problem404},
		{Name: "escaped dots", Send: Request("GET /tree/sub%2f..%2f..%2fsecret.txt"), Want: Problem404},
		{Name: "NUL", Send: Request("GET /tree/a.txt%00"), Want: Problem404},
		{Name: "zip", Send: Request("GET /zip/z.txt"), Want: ok("200 OK", plainText, digits, 10)},
		{Name: "range of zip", Send: Request("GET /zip/z.txt", "Range: bytes=5-6"), Want: strings.Replace(ok("206 Partial Content", plainText, "56", 10), "\nContent-Type", "\nContent-Range: bytes 5-6/10\nContent-Type", 1)},
		{Name: "timeless in a tree", Send: Request("GET /timeless/t.txt"), Want: "HTTP/1.1 200 OK\nAccept-Ranges: bytes\nContent-Length: 10\nContent-Type: text/plain; charset=utf-8\nEtag: \"hNiYd_DUBB77a_kaFvAkjw\"\n\n" + digits},
		{Name: "timeless alone", Send: Request("GET /timeless%20one"), Want: "HTTP/1.1 200 OK\nAccept-Ranges: bytes\nContent-Length: 10\nContent-Type: text/plain; charset=utf-8\n\n" + digits},
		{Name: "File", Send: Request("GET /file/a.txt"), Want: ok("200 OK", plainText, digits, 10)},
		{Name: "File: missing", Send: Request("GET /file/nope"), Want: strings.Replace(Problem404, "\n\n", "\nX-A: 1\n\n", 1)},
		{Name: "File: traversal", Send: Request("GET /file/..%2fsecret.txt"), Want: strings.Replace(Problem404, "\n\n", "\nX-A: 1\n\n", 1)},
		{Name: "own headers", Send: Request("GET /own"), Want: "HTTP/1.1 200 OK\nAccept-Ranges: bytes\nContent-Length: 10\nContent-Type: text/x\nEtag: \"own\"\nLast-Modified: " + fileTimeText + "\n\n" + digits},
		{Name: "own ETag matches", Send: Request("GET /own", `If-None-Match: "own"`), Want: "HTTP/1.1 304 Not Modified\nEtag: \"own\"\n\n"},
		{Name: "another status", Send: Request("GET /gone", "Range: bytes=0-0"), Want: ok("404 Not Found", "text/html; charset=utf-8", "<p>gone", 7)},
	}
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, logs := Start(t, dunlin.Config{Engine: engine}, registerFiles(t))
		defer func() {
			if text := logs.String(); text != "" {
				t.Errorf("what clients ask for is no error of the server:\n%s", text)
			}
		}()
		for _, c := range cases {
			t.Run(c.Name, func(t *testing.T) {
				got := Exchange(t, addr, c.Closes, c.Send)[0]
				if c.Name == "File" {
					got = strings.Replace(got, "X-A: 1\n", "", 1)
				}
				if got != c.Want {
					t.Errorf("answer:\n%s\nwant:\n%s", Clip(got), Clip(c.Want))
				}
			})
		}
	})
}

func TestFilesMultiRange(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine}, registerFiles(t))
		for _, path := range []string{"/tree/a.txt", "/zip/z.txt"} {
			got := Exchange(t, addr, false, Request("GET "+path, "Range: bytes=5-6,0-1"))[0]
			WantContains(t, path, got, "206 Partial Content", "Content-Type: multipart/byteranges; boundary=",
				"Content-Range: bytes 5-6/10\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n56\r\n", "Content-Range: bytes 0-1/10")
		}
	})
}

// A recently written file may change again within the resolution of its modification time.
func TestRecentlyModifiedFiles(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "young.txt")
	if err := os.WriteFile(name, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	future := time.Now().Add(time.Hour)
	if err := os.Chtimes(name, future, future); err != nil {
		t.Fatal(err)
	}
	w, _ := RespondWith(t, func() dunlin.Response { return dunlin.File(name) })
	if tag := w.Header().Get("Etag"); !strings.HasPrefix(tag, `W/"`) {
		t.Errorf("ETag %q, want a weak one", tag)
	}
}

// A file that the system sends in pieces arrives in order, from any offset.
func TestFilePieces(t *testing.T) {
	content := make([]byte, 3<<20+123)
	for i := range content {
		content[i] = byte(i ^ i>>8 ^ i>>16)
	}
	name := filepath.Join(t.TempDir(), "pieces")
	if err := os.WriteFile(name, content, 0o644); err != nil {
		t.Fatal(err)
	}
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/", func(*dunlin.Request) dunlin.Response { return dunlin.File(name) })
		})
		for _, from := range []int{0, 1, 511<<10 + 7, 2 << 20} {
			_, got := askStd(t, "GET", "http://"+addr, "", "Range", fmt.Sprintf("bytes=%d-", from))
			if got != string(content[from:]) {
				t.Errorf("from %d: got %d bytes that differ from the file", from, len(got))
			}
		}
	})
}

// Sending large files holds only the memory of the data in flight.
func TestFilesMemory(t *testing.T) {
	const clients, size = 16, 10 << 20
	name := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(name, make([]byte, size), 0o644); err != nil {
		t.Fatal(err)
	}
	OnEngines(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/", func(*dunlin.Request) dunlin.Response {
				return dunlin.File(name).Header("Content-Type", "application/x")
			})
		})
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		var wg sync.WaitGroup
		for range clients {
			conn := Dial(t, addr)
			wg.Go(func() {
				_, _ = io.WriteString(conn, Request("GET /", "Connection: close"))
				br := bufio.NewReader(conn)
				n, err := io.Copy(io.Discard, br)
				if err != nil || n < size {
					t.Errorf("%d bytes, %v", n, err)
				}
			})
		}
		wg.Wait()
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > clients*256<<10 && !invariants.Enabled { // with the race detector pools drop some of their items
			t.Errorf("%d KB allocated for %d files of %d KB", grown>>10, clients, size>>10)
		}
	})
}

// The client learns that a file has shrunk since it was opened, and that the response is truncated.
func TestFileShrinks(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/probe", Text("probe"))
			app.Get("/", func(*dunlin.Request) dunlin.Response { return dunlin.FS(shrinking{}, "x.bin") })
		})
		conn := Dial(t, addr)
		_, _ = io.WriteString(conn, Request("GET /"))
		if got, err := ReadAnswer(bufio.NewReader(conn), "GET"); err == nil {
			t.Errorf("%d bytes and no error", len(got))
		}
	})
}

// shrinking has a file that reports more bytes than it has.
type shrinking struct{}

func (shrinking) Open(string) (fs.File, error) {
	f, err := os.CreateTemp("", "shrinking")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(f.Name())
	_, err = f.Write(make([]byte, 100_000))
	return shrunk{f}, err
}

type shrunk struct{ *os.File }

func (s shrunk) Stat() (fs.FileInfo, error) {
	info, err := s.File.Stat()
	return longer{info}, err
}

type longer struct{ fs.FileInfo }

func (l longer) Size() int64 { return 200_000 }

func (s shrunk) Seek(offset int64, whence int) (int64, error) {
	if whence == io.SeekEnd {
		return 200_000, nil
	}
	return s.File.Seek(offset, whence)
}

// A hugeFile consists of zeros; its size exceeds 32 bits.
type hugeFile struct{ *io.SectionReader }

const hugeSize = 5<<30 + 7

type zeros struct{}

func (zeros) ReadAt(p []byte, _ int64) (int, error) { clear(p); return len(p), nil }

func (hugeFile) Open(string) (fs.File, error) {
	return hugeFile{io.NewSectionReader(zeros{}, 0, hugeSize)}, nil
}
func (hugeFile) Close() error                 { return nil }
func (f hugeFile) Stat() (fs.FileInfo, error) { return f, nil }
func (hugeFile) Name() string                 { return "huge.bin" }
func (hugeFile) Mode() fs.FileMode            { return 0o444 }
func (hugeFile) ModTime() time.Time           { return fileTime }
func (hugeFile) IsDir() bool                  { return false }
func (hugeFile) Sys() any                     { return nil }

func TestHugeFile(t *testing.T) {
	want := fmt.Sprintf("\r\nContent-Length: %d\r\n", int64(hugeSize))
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Handle("GET,HEAD", "/", func(*dunlin.Request) dunlin.Response { return dunlin.FS(hugeFile{}, "huge.bin") })
			std := dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				http.ServeContent(w, r, "huge.bin", fileTime, io.NewSectionReader(zeros{}, 0, hugeSize))
			}))
			app.Handle("GET,HEAD", "/std", std)
		})
		for _, line := range []string{"GET /", "HEAD /", "GET /std", "HEAD /std"} {
			conn := Dial(t, addr)
			Send(t, conn, Request(line))
			br, head := bufio.NewReader(conn), ""
			for !strings.HasSuffix(head, "\r\n\r\n") {
				text, err := br.ReadString('\n')
				if head += text; err != nil {
					t.Fatalf("%s: got %q, %v", line, head, err)
				}
			}
			if !strings.Contains(head, want) {
				t.Errorf("%s is answered with\n%s\nwant %s", line, head, want)
			}
			_ = conn.Close()
		}
	})
}
