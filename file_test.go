package dunlin_test

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
		"100%/index.html": "<p>100", "a:b c/index.html": "<p>a:b", "odd/index.html/index.html": "<p>odd", ".hidden": "hidden", "guarded/x.txt": "guarded",
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

// denyFS refuses one file, as a system does when the user is not root.
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
		app.Get("/probe", text("probe"))
		app.Get("/tree/{path...}", dunlin.Files(denyFS{os.DirFS(dir)}))
		app.Get("/tree/guarded/{path...}", func(*dunlin.Request) dunlin.Response {
			return dunlin.Problem(dunlin.ProblemDetails{Status: http.StatusForbidden})
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
	unsatisfied := problem("416 Requested Range Not Satisfiable", `{"title":"Requested Range Not Satisfiable","status":416}`)
	unsatisfied = strings.Replace(unsatisfied, "\nContent-Type", "\nContent-Range: bytes */10\nContent-Type", 1)
	forbidden := problem("403 Forbidden", `{"title":"Forbidden","status":403}`)
	redirect := func(to string) string {
		return "HTTP/1.1 308 Permanent Redirect\nContent-Length: 0\nLocation: " + to + "\n\n"
	}
	cases := []parityCase{
		{name: "whole", send: req("GET /tree/a.txt"), want: ok("200 OK", plainText, digits, 10)},
		{name: "HEAD", send: req("HEAD /tree/a.txt"), want: strings.TrimSuffix(ok("200 OK", plainText, digits, 10), digits)},
		{name: "media type", send: req("GET /tree/b.css"), want: ok("200 OK", "text/css; charset=utf-8", "p{}", 3)},
		{name: "media type by content", send: req("GET /tree/noext"), want: ok("200 OK", "text/html; charset=utf-8", "<html>x", 7)},
		{name: "large", send: req("GET /tree/big.bin"), want: ok("200 OK", "application/octet-stream", big, 320_000)},
		{name: "HTTP/1.0", send: "GET /tree/big.bin HTTP/1.0\r\n\r\n", want: strings.Replace(ok("200 OK", "application/octet-stream", big, 320_000), "1.1", "1.0", 1), closes: true},
		{name: "range", send: req("GET /tree/a.txt", "Range: bytes=2-4"), want: strings.Replace(ok("206 Partial Content", plainText, "234", 10), "\nContent-Type", "\nContent-Range: bytes 2-4/10\nContent-Type", 1)},
		{name: "range at the end", send: req("GET /tree/a.txt", "Range: bytes=-3"), want: strings.Replace(ok("206 Partial Content", plainText, "789", 10), "\nContent-Type", "\nContent-Range: bytes 7-9/10\nContent-Type", 1)},
		{name: "large range", send: req("GET /tree/big.bin", "Range: bytes=16-160015"),
			want: strings.Replace(ok("206 Partial Content", "application/octet-stream", big[16:160016], 320_000), "\nContent-Type", "\nContent-Range: bytes 16-160015/320000\nContent-Type", 1)},
		{name: "range beyond", send: req("GET /tree/a.txt", "Range: bytes=10-"), want: unsatisfied},
		{name: "If-None-Match", send: req("GET /tree/a.txt", "If-None-Match: W/"+etagOf(10)), want: notModified},
		{name: "If-Modified-Since", send: req("GET /tree/a.txt", "If-Modified-Since: "+fileTimeText), want: notModified},
		{name: "If-None-Match of another", send: req("GET /tree/a.txt", `If-None-Match: "x"`), want: ok("200 OK", plainText, digits, 10)},
		{name: "If-Match of another", send: req("GET /tree/a.txt", `If-Match: "x"`), want: problem("412 Precondition Failed", `{"title":"Precondition Failed","status":412}`)},
		{name: "If-Range", send: req("GET /tree/a.txt", "Range: bytes=0-0", "If-Range: "+etagOf(10)), want: strings.Replace(ok("206 Partial Content", plainText, "0", 10), "\nContent-Type", "\nContent-Range: bytes 0-0/10\nContent-Type", 1)},
		{name: "If-Range of another", send: req("GET /tree/a.txt", "Range: bytes=0-0", `If-Range: "x"`), want: ok("200 OK", plainText, digits, 10)},
		{name: "index", send: req("GET /tree/sub/"), want: ok("200 OK", "text/html; charset=utf-8", "<p>sub", 6)},
		{name: "directory without a slash", send: req("GET /tree/sub?q=1"), want: redirect("./sub/?q=1")},
		{name: "directory with a percent sign", send: req("GET /tree/100%25"), want: redirect("./100%25/")},
		{name: "directory with a colon", send: req("GET /tree/a:b%20c"), want: redirect("./a:b%20c/")},
		{name: "directory with a percent sign and a slash", send: req("GET /tree/100%25/"), want: ok("200 OK", "text/html; charset=utf-8", "<p>100", 6)},
		{name: "directory named as an index", send: req("GET /tree/odd/index.html/"), want: ok("200 OK", "text/html; charset=utf-8", "<p>odd", 6)},
		{name: "directory for an index", send: req("GET /tree/odd/"), want: problem404},
		{name: "file with a slash", send: req("GET /tree/a.txt/?q=1"), want: redirect("../a.txt?q=1")},
		{name: "dot file", send: req("GET /tree/.hidden"), want: ok("200 OK", "text/plain; charset=utf-8", "hidden", 6)},
		{name: "below a file", send: req("GET /tree/a.txt/x"), want: problem404},
		{name: "name too long", send: req("GET /tree/" + strings.Repeat("x", 300)), want: problem404},
		{name: "path too long", send: req("GET /tree/" + strings.Repeat("x/", 5000)), want: problem404},
		{name: "links that go around", send: req("GET /tree/around"), want: problem404},
		{name: "NUL in a root", send: req("GET /root/a.txt%00"), want: problem404},
		{name: "name too long in a root", send: req("GET /root/" + strings.Repeat("x", 300)), want: problem404},
		{name: "below a file in a root", send: req("GET /root/a.txt/x"), want: problem404},
		{name: "link out of a root", send: req("GET /root/out.txt"), want: problem404},
		{name: "link out of a directory", send: req("GET /tree/out.txt"), want: ok("200 OK", plainText, "secret", 6)},
		{name: "escaped slash", send: req("GET /tree/guarded%2fx.txt"), want: problem404},
		{name: "escaped slash at the end", send: req("GET /tree/sub%2F"), want: problem404},
		{name: "guarded", send: req("GET /tree/guarded/x.txt"), want: problem("403 Forbidden", `{"title":"Forbidden","status":403}`)},
		{name: "escaped letters of a guarded path", send: req("GET /tree/%67uarded/x.txt"), want: problem("403 Forbidden", `{"title":"Forbidden","status":403}`)},
		{name: "backslash", send: req("GET /tree/guarded%5cx.txt"), want: problem404},
		{name: "File: name too long", send: req("GET /file/" + strings.Repeat("x", 300)), want: strings.Replace(problem404, "\n\n", "\nX-A: 1\n\n", 1)},
		{name: "File: NUL", send: req("GET /file/a%00"), want: strings.Replace(problem404, "\n\n", "\nX-A: 1\n\n", 1)},
		{name: "directory without an index", send: req("GET /tree/bare/"), want: problem404},
		{name: "root without an index", send: req("GET /tree/"), want: problem404},
		{name: "missing", send: req("GET /tree/nope.txt"), want: problem404},
		{name: "forbidden", send: req("GET /tree/closed.txt"), want: forbidden},
		{name: "escaped traversal", send: req("GET /tree/..%2fsecret.txt"), want: problem404},
		{name: "escaped dots", send: req("GET /tree/sub%2f..%2f..%2fsecret.txt"), want: problem404},
		{name: "NUL", send: req("GET /tree/a.txt%00"), want: problem404},
		{name: "zip", send: req("GET /zip/z.txt"), want: ok("200 OK", plainText, digits, 10)},
		{name: "range of zip", send: req("GET /zip/z.txt", "Range: bytes=5-6"), want: strings.Replace(ok("206 Partial Content", plainText, "56", 10), "\nContent-Type", "\nContent-Range: bytes 5-6/10\nContent-Type", 1)},
		{name: "timeless in a tree", send: req("GET /timeless/t.txt"), want: "HTTP/1.1 200 OK\nAccept-Ranges: bytes\nContent-Length: 10\nContent-Type: text/plain; charset=utf-8\nEtag: \"hNiYd_DUBB77a_kaFvAkjw\"\n\n" + digits},
		{name: "timeless alone", send: req("GET /timeless%20one"), want: "HTTP/1.1 200 OK\nAccept-Ranges: bytes\nContent-Length: 10\nContent-Type: text/plain; charset=utf-8\n\n" + digits},
		{name: "File", send: req("GET /file/a.txt"), want: ok("200 OK", plainText, digits, 10)},
		{name: "File: missing", send: req("GET /file/nope"), want: strings.Replace(problem404, "\n\n", "\nX-A: 1\n\n", 1)},
		{name: "File: traversal", send: req("GET /file/..%2fsecret.txt"), want: strings.Replace(problem404, "\n\n", "\nX-A: 1\n\n", 1)},
		{name: "own headers", send: req("GET /own"), want: "HTTP/1.1 200 OK\nAccept-Ranges: bytes\nContent-Length: 10\nContent-Type: text/x\nEtag: \"own\"\nLast-Modified: " + fileTimeText + "\n\n" + digits},
		{name: "own ETag matches", send: req("GET /own", `If-None-Match: "own"`), want: "HTTP/1.1 304 Not Modified\nEtag: \"own\"\n\n"},
		{name: "another status", send: req("GET /gone", "Range: bytes=0-0"), want: ok("404 Not Found", "text/html; charset=utf-8", "<p>gone", 7)},
	}
	onEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, logs := start(t, dunlin.Config{Engine: engine}, registerFiles(t))
		defer func() {
			if text := logs.String(); text != "" {
				t.Errorf("what clients ask for is no error of the server:\n%s", text)
			}
		}()
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				got := exchangeRaw(t, addr, c.closes, c.send)[0]
				if c.name == "File" {
					got = strings.Replace(got, "X-A: 1\n", "", 1)
				}
				if got != c.want {
					t.Errorf("answer:\n%s\nwant:\n%s", clip(got), clip(c.want))
				}
			})
		}
	})
}

func TestFilesMultiRange(t *testing.T) {
	onEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := start(t, dunlin.Config{Engine: engine}, registerFiles(t))
		for _, path := range []string{"/tree/a.txt", "/zip/z.txt"} {
			got := exchangeRaw(t, addr, false, req("GET "+path, "Range: bytes=5-6,0-1"))[0]
			wantContains(t, path, got, "206 Partial Content", "Content-Type: multipart/byteranges; boundary=",
				"Content-Range: bytes 5-6/10\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n56\r\n", "Content-Range: bytes 0-1/10")
		}
	})
}

// A file that was just written may be written again within its time's grain.
func TestFilesYoung(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "young.txt")
	if err := os.WriteFile(name, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	future := time.Now().Add(time.Hour)
	if err := os.Chtimes(name, future, future); err != nil {
		t.Fatal(err)
	}
	w, _ := respondWith(t, func() dunlin.Response { return dunlin.File(name) })
	if tag := w.Header().Get("Etag"); !strings.HasPrefix(tag, `W/"`) {
		t.Errorf("ETag %q, want a weak one", tag)
	}
}

// A file that the system sends in pieces arrives in order, from wherever it begins.
func TestFilePieces(t *testing.T) {
	content := make([]byte, 3<<20+123)
	for i := range content {
		content[i] = byte(i ^ i>>8 ^ i>>16)
	}
	name := filepath.Join(t.TempDir(), "pieces")
	if err := os.WriteFile(name, content, 0o644); err != nil {
		t.Fatal(err)
	}
	onEngines(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/", func(*dunlin.Request) dunlin.Response { return dunlin.File(name) })
		})
		for _, from := range []int{0, 1, 511<<10 + 7, 2 << 20} {
			_, got := askStd(t, "GET", "http://"+addr, "", "Range", fmt.Sprintf("bytes=%d-", from))
			if got != string(content[from:]) {
				t.Errorf("from %d: %d bytes, not those of the file", from, len(got))
			}
		}
	})
}

// Sending large files holds no more memory than what is under way.
func TestFilesMemory(t *testing.T) {
	const clients, size = 16, 10 << 20
	name := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(name, make([]byte, size), 0o644); err != nil {
		t.Fatal(err)
	}
	onEngines(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/", func(*dunlin.Request) dunlin.Response {
				return dunlin.File(name).Header("Content-Type", "application/x")
			})
		})
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		var wg sync.WaitGroup
		for range clients {
			conn := dial(t, addr)
			wg.Go(func() {
				_, _ = io.WriteString(conn, req("GET /", "Connection: close"))
				br := bufio.NewReader(conn)
				n, err := io.Copy(io.Discard, br)
				if err != nil || n < size {
					t.Errorf("%d bytes, %v", n, err)
				}
			})
		}
		wg.Wait()
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > clients*256<<10 {
			t.Errorf("%d KB allocated for %d files of %d KB", grown>>10, clients, size>>10)
		}
	})
}

// The client of a file that has shrunk since it was opened learns that it has
// not got the whole.
func TestFileShrinks(t *testing.T) {
	onEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/probe", text("probe"))
			app.Get("/", func(*dunlin.Request) dunlin.Response { return dunlin.FS(shrinking{}, "x.bin") })
		})
		conn := dial(t, addr)
		_, _ = io.WriteString(conn, req("GET /"))
		if got, err := readAnswer(bufio.NewReader(conn), "GET"); err == nil {
			t.Errorf("%d bytes and no error", len(got))
		}
	})
}

// shrinking has a file that says it is longer than it is.
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

// A hugeFile is one of zeros, larger than 32 bits can say.
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
	onEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Handle("GET,HEAD", "/", func(*dunlin.Request) dunlin.Response { return dunlin.FS(hugeFile{}, "huge.bin") })
			std := dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				http.ServeContent(w, r, "huge.bin", fileTime, io.NewSectionReader(zeros{}, 0, hugeSize))
			}))
			app.Handle("GET,HEAD", "/std", std)
		})
		for _, line := range []string{"GET /", "HEAD /", "GET /std", "HEAD /std"} {
			conn := dial(t, addr)
			send(t, conn, req(line))
			br, head := bufio.NewReader(conn), ""
			for !strings.HasSuffix(head, "\r\n\r\n") {
				text, err := br.ReadString('\n')
				if head += text; err != nil {
					t.Fatalf("%s: %q, %v", line, head, err)
				}
			}
			if !strings.Contains(head, want) {
				t.Errorf("%s is answered with\n%s\nwant %s", line, head, want)
			}
			_ = conn.Close()
		}
	})
}
