package pages

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/http/cookiejar"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/internal/suite"
	"github.com/dunlinhttp/dunlin/middleware"
	"github.com/dunlinhttp/dunlin/store"
	"github.com/dunlinhttp/dunlin/typed"
)

func sessionsOfClients(t *testing.T, app *dunlin.App) {
	var st store.Store = store.NewMemory(store.MemoryConfig{})
	type account struct{ ID int64 }
	check := func(*dunlin.Request) (account, error) { return account{7}, nil }

	type visit struct {
		UserID int64
		Cart   []string
	}

	sessions := middleware.NewSessions[visit](middleware.SessionConfig{Store: st})
	app.Use(sessions.Middleware())

	app.Post("/login", dunlin.Try(func(r *dunlin.Request) (dunlin.Response, error) {
		user, err := check(r)
		if err != nil {
			return dunlin.Response{}, err
		}
		return dunlin.Redirect("/"), sessions.Login(r, func(v *visit) error { v.UserID = user.ID; return nil })
	}))

	articles := func(user int64) []int64 { return []int64{user} }

	userKey := dunlin.NewKey[int64]("user")

	// maybeUser passes the user of the session on, if there is one.
	maybeUser := func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			v, _, err := sessions.Get(r)
			if err != nil {
				return dunlin.Error(err) // 503 while the store is unavailable
			}
			userKey.Set(r, v.UserID) // 0 without a login
			return next(r)
		}
	}

	app.Get("/articles", func(r *dunlin.Request) dunlin.Response {
		user, _ := userKey.Get(r)
		return dunlin.JSON(articles(user))
	}, maybeUser)

	client := dunlintest.NewClient(app)
	client.Jar, _ = cookiejar.New(nil) // never fails
	for _, want := range []string{"[0]", "[7]"} {
		resp, err := client.Get("https://notes.example/articles")
		if err != nil {
			t.Fatal(err)
		}
		if got := suite.Body(t, resp); got != want {
			t.Errorf("the articles: %s, want %s", got, want)
		}
		if resp, err = client.Post("https://notes.example/login", "", nil); err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}

	newSecret, oldSecret := make([]byte, 32), make([]byte, 32)
	_, _ = rand.Read(newSecret) // never fails
	_, _ = rand.Read(oldSecret)
	keys := middleware.NewKeyRing(newSecret, oldSecret) // 32 random bytes each
	middleware.NewSessions[visit](middleware.SessionConfig{Keys: keys})
}

//go:embed dist
var dist embed.FS

func staticFiles(t *testing.T, app *dunlin.App) {
	register := func() error {
		files, err := fs.Sub(dist, "dist")
		if err != nil {
			return err
		}
		assets, err := middleware.Static(middleware.StaticConfig{FS: files, Fallback: "index.html"})
		if err != nil {
			return err
		}
		app.Get("/{path...}", assets) // for paths that no other route takes, whenever those are registered
		return nil
	}
	if err := register(); err != nil {
		t.Fatal(err)
	}
	browser := dunlintest.NewClient(app)
	for path, want := range map[string]int{"/": 200, "/app.4f3a09bc.js": 200, "/links/7": 200, "/none.js": 404} {
		req, _ := http.NewRequest("GET", "https://links.example"+path, nil)
		if path == "/links/7" {
			req.Header.Set("Sec-Fetch-Mode", "navigate")
		}
		resp, err := browser.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != want {
			t.Errorf("%s: got %d", path, resp.StatusCode)
		}
	}
}

func htmlPages(t *testing.T, app *dunlin.App) {
	pages := template.Must(template.New("hello").Parse("<h1>Hello, {{.}}!</h1>"))

	app.Get("/hello/{name}", func(r *dunlin.Request) dunlin.Response {
		name := r.Param("name")
		return dunlin.Stream("text/html; charset=utf-8", func(w io.Writer) error {
			return pages.ExecuteTemplate(w, "hello", name)
		})
	})

	app.Get("/none", func(*dunlin.Request) dunlin.Response {
		return dunlin.Stream("text/html; charset=utf-8", func(w io.Writer) error {
			return pages.ExecuteTemplate(w, "none", nil)
		})
	})
	for path, want := range map[string]int{"/hello/Ada": 200, "/none": 500} {
		resp, err := dunlintest.NewClient(app).Get("https://links.example" + path)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != want {
			t.Errorf("%s: got %d", path, resp.StatusCode)
		}
	}
}

// formattedAsPages is problemsAsPages with problems in a format of its own.
func formattedAsPages(t *testing.T, _ *dunlin.App) {
	type envelope struct {
		Status int `json:"status"`
	}
	problemsAsPages(t, dunlin.New(dunlin.Config{
		Logger: slog.New(slog.DiscardHandler),
		Problems: dunlin.FormatProblems("application/json", func(_ *dunlin.AnswerInfo, p *dunlin.ProblemDetails) envelope {
			return envelope{p.Status}
		}),
	}))
}

func problemsAsPages(t *testing.T, app *dunlin.App) {
	var causes atomic.Int64
	app.Install(dunlin.Hooks{Observe: func(info *dunlin.AnswerInfo) {
		if info.Err() != nil && info.Err().Error() == "why" {
			causes.Add(1)
		}
	}})
	pages := template.Must(template.New("problem").Parse("<h1>{{.}}</h1>"))

	forPeople := func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			resp := next(r)
			if resp.StatusCode() < 400 || strings.HasPrefix(resp.Get("Content-Type"), "text/html") {
				return resp
			}
			resp = resp.AddHeader("Vary", "Accept")
			if !strings.Contains(r.Header("Accept"), "text/html") {
				return resp
			}
			var page bytes.Buffer
			if err := pages.ExecuteTemplate(&page, "problem", resp.StatusCode()); err != nil {
				return dunlin.Error(err)
			}
			return resp.WithBody(page.Bytes()).Header("Content-Type", "text/html; charset=utf-8")
		}
	}
	app.Use(forPeople) // before middleware that refuses

	limit := middleware.RateLimit(middleware.RateLimitConfig{Limit: 1, Window: time.Hour}).Middleware()
	app.Get("/limited", hello, limit)
	app.Get("/fails", func(*dunlin.Request) dunlin.Response { return dunlin.Error(errors.New("why")) })
	app.Get("/panics", func(*dunlin.Request) dunlin.Response { panic("why") })
	app.Get("/limited/too", dunlin.FromStd(http.NotFoundHandler()))
	app.Get("/own", func(*dunlin.Request) dunlin.Response {
		return dunlin.Bytes("text/html; charset=utf-8", []byte("<p>Again</p>")).Status(422)
	})
	client := dunlintest.NewClient(app)
	for _, c := range []struct {
		method, path, accept, body, header string
		status                             int
	}{
		{"GET", "/limited", "text/html", "hello", "", 200},
		{"GET", "/limited", "text/html", "<h1>429</h1>", "Retry-After", 429},
		{"GET", "/limited", "application/json", `"status":429`, "Retry-After", 429},
		{"GET", "/none", "text/html,*/*", "<h1>404</h1>", "Vary", 404},
		{"POST", "/fails", "text/html", "<h1>405</h1>", "Allow", 405},
		{"GET", "/fails", "text/html", "<h1>500</h1>", "", 500},
		{"GET", "/panics", "text/html", "<h1>500</h1>", "", 500},
		{"GET", "/limited/too", "text/html", "<h1>404</h1>", "", 404},
		{"GET", "/own", "text/html", "<p>Again</p>", "", 422},
	} {
		req, _ := http.NewRequest(c.method, "https://links.example"+c.path, nil)
		req.Header.Set("Accept", c.accept)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body := suite.Body(t, resp)
		if resp.StatusCode != c.status || !strings.Contains(body, c.body) || c.header != "" && resp.Header.Get(c.header) == "" {
			t.Errorf("%s %s: got %d %s %v", c.method, c.path, resp.StatusCode, body, resp.Header)
		}
	}
	if causes.Load() != 1 {
		t.Error("the cause of the 500 is lost")
	}
}

func problemFormat(t *testing.T, _ *dunlin.App) {
	var config dunlin.Config

	type envelope struct {
		Errors struct {
			Body []string `json:"body"`
		} `json:"errors"`
	}

	config.Problems = dunlin.FormatProblems("application/json", func(_ *dunlin.AnswerInfo, p *dunlin.ProblemDetails) (e envelope) {
		e.Errors.Body = []string{cmp.Or(p.Detail, p.Title)}
		return e
	})
	resp, err := dunlintest.NewClient(dunlin.New(config)).Get("https://links.example/none")
	if err != nil {
		t.Fatal(err)
	}
	if body := suite.Body(t, resp); body != `{"errors":{"body":["Not Found"]}}` {
		t.Error(body)
	}
}

func violationsInAFormat(t *testing.T, _ *dunlin.App) {
	config := dunlin.Config{Logger: slog.New(slog.DiscardHandler)}

	type apiError struct {
		Error struct {
			Code    string            `json:"code"`
			Message string            `json:"message"`
			Fields  []typed.Violation `json:"fields,omitempty"`
		} `json:"error"`
	}

	config.Problems = dunlin.FormatProblems("application/json", func(_ *dunlin.AnswerInfo, p *dunlin.ProblemDetails) (e apiError) {
		e.Error.Code, e.Error.Message = cmp.Or(p.Type, strconv.Itoa(p.Status)), cmp.Or(p.Detail, p.Title)
		if invalid, ok := errors.AsType[*typed.Invalid](p); ok {
			e.Error.Fields = invalid.Violations
		}
		return e
	})

	app := dunlin.New(config)
	taken := typed.NewFault(409, "taken", "It is taken")
	op := typed.Post(app, "/tasks", func(_ *dunlin.Request, in struct {
		Body struct {
			Title string `json:"title" minLength:"1"`
		}
	}) (typed.None, error) {
		return typed.None{}, taken
	}).Faults(taken)
	var in struct {
		Body struct {
			Title string `json:"title" minLength:"1"`
		}
	}
	if got, want := string(op.Test(t, app, in).Body), `{"error":{"code":"400","message":"the request is invalid in 1 place","fields":[`+
		`{"in":"body","pointer":"#/title","rule":"minLength","limit":"1","detail":"must have at least 1 character"}]}}`; got != want {
		t.Errorf("got %s", got)
	}
	in.Body.Title = "x"
	if x := op.Test(t, app, in); string(x.Body) != `{"error":{"code":"taken","message":"It is taken"}}` || !errors.Is(x.Problem, taken) {
		t.Errorf("got %s", x.Body)
	}
}

func ownState(t *testing.T, _ *dunlin.App) {
	t.Setenv("DUNLIN_STORE", "")
	open := func() error {
		st, err := store.Open(os.Getenv("DUNLIN_STORE")) // "" is memory
		if err != nil {
			return err
		}
		defer st.Close()
		return nil
	}
	if err := open(); err != nil {
		t.Fatal(err)
	}
}

var (
	tooLarge  = typed.NewFault(413, "too-large", "the file has more than 5 MiB")
	wrongType = typed.NewFault(415, "wrong-type", "the file is not a PNG or JPEG image")
)

// savePart copies a part to w. It refuses a part of more than most bytes, and one whose content has none of the media types.
func savePart(w io.Writer, part io.Reader, most int64, types ...string) error {
	head := make([]byte, 512) // decides the type
	n, err := io.ReadFull(part, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF { // these two: a short file
		return err
	}
	if !slices.Contains(types, http.DetectContentType(head[:n])) {
		return wrongType
	}
	size, err := io.Copy(w, io.LimitReader(io.MultiReader(bytes.NewReader(head[:n]), part), most+1))
	if err == nil && size > most {
		return tooLarge
	}
	return err
}

// keep saves the request body in the folder under a random name. The file appears there when it is complete.
func keep(r *dunlin.Request, folder *os.Root) (name, digest string, err error) {
	name = rand.Text()
	f, err := folder.Create(name + ".part")
	if err != nil {
		return "", "", err
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(f, sum), r.Body())
	if err = errors.Join(err, f.Close()); err != nil {
		_ = folder.Remove(name + ".part")
		return "", "", err
	}
	return name, hex.EncodeToString(sum.Sum(nil)), folder.Rename(name+".part", name)
}

func filesOfUsers(t *testing.T, app *dunlin.App) {
	folder, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()

	app.Put("/files", dunlin.Try(func(r *dunlin.Request) (dunlin.Response, error) {
		name, digest, err := keep(r, folder)
		return dunlin.JSON(map[string]string{"name": name, "sha256": digest}).Status(201), err
	})).MaxBody(50 << 20).Timeout(10 * time.Minute)

	app.Get("/files/{name}", func(r *dunlin.Request) dunlin.Response {
		return dunlin.FS(folder.FS(), r.Param("name")).Header("Content-Disposition", "attachment")
	})

	send := func(size int64) (*http.Response, string) {
		req, _ := http.NewRequest("PUT", "https://notes.example/files", io.LimitReader(zeros{}, size))
		resp, err := dunlintest.NewClient(app).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		return resp, suite.Body(t, resp)
	}
	resp, body := send(5 << 20)
	var kept struct{ Name, SHA256 string }
	if err := json.Unmarshal([]byte(body), &kept); err != nil || resp.StatusCode != 201 || kept.SHA256 != hex.EncodeToString(sumOfZeros(5<<20)) {
		t.Fatalf("5 MiB: got %d %s", resp.StatusCode, body)
	}
	req, _ := http.NewRequest("GET", "https://notes.example/files/"+kept.Name, nil)
	req.Header.Set("Range", "bytes=100-199")
	if resp, err = dunlintest.NewClient(app).Do(req); err != nil || resp.StatusCode != 206 || resp.ContentLength != 100 || resp.Header.Get("Content-Disposition") != "attachment" {
		t.Errorf("a part of it: got %v, %v", resp, err)
	}
	_ = resp.Body.Close()
	if resp, body := send(50<<20 + 1); resp.StatusCode != 413 {
		t.Errorf("too much: got %d %s", resp.StatusCode, body)
	}
	if left, err := fs.ReadDir(folder.FS(), "."); err != nil || len(left) != 1 {
		t.Errorf("the folder has %v, %v", left, err)
	}
}

// photoIn is a form with a photo.
type photoIn struct {
	Body typed.Parts
}

func checkedParts(t *testing.T, app *dunlin.App) {
	file := new(bytes.Buffer)

	op := typed.Post(app, "/photos", func(_ *dunlin.Request, in photoIn) (typed.None, error) {
		for part, err := range in.Body.All() {
			if err != nil {
				return typed.None{}, err
			}
			if part.FormName() == "photo" {
				if err := savePart(file, part, 5<<20, "image/png", "image/jpeg"); err != nil {
					return typed.None{}, err
				}
			}
		}
		return typed.None{}, nil
	}).Faults(tooLarge, wrongType)
	op.Route().MaxBody(10 << 20)

	const png = "\x89PNG\x0D\x0A\x1A\x0A"
	for what, c := range map[string]struct {
		content string
		status  int
	}{
		"a short photo":       {png, 204},
		"the largest photo":   {png + strings.Repeat("x", 5<<20-len(png)), 204},
		"one byte more":       {png + strings.Repeat("x", 5<<20-len(png)+1), 413},
		"a page named as PNG": {"<html>", 415},
		"an empty file":       {"", 415},
	} {
		file.Reset()
		var form bytes.Buffer
		w := multipart.NewWriter(&form)
		part, _ := w.CreateFormFile("photo", "a.png")
		_, _ = io.WriteString(part, c.content)
		_ = w.Close()
		resp, err := dunlintest.NewClient(app).Post("https://notes.example/photos", w.FormDataContentType(), &form)
		if err != nil {
			t.Fatal(err)
		}
		if body := suite.Body(t, resp); resp.StatusCode != c.status || c.status == 204 && file.String() != c.content {
			t.Errorf("%s: %d %s with %d bytes, want %d", what, resp.StatusCode, body, file.Len(), c.status)
		}
	}
}

// zeros is an endless reader of zeros.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func sumOfZeros(size int64) []byte {
	sum := sha256.New()
	_, _ = io.CopyN(sum, zeros{}, size)
	return sum.Sum(nil)
}

func eventsOfAStore(t *testing.T, app *dunlin.App) {
	var st store.Store = store.NewMemory(store.MemoryConfig{})

	app.Get("/news", func(*dunlin.Request) dunlin.Response {
		return dunlin.SSE(func(e *dunlin.Events) error {
			told := make(chan string)
			err := st.Subscribe(e.Context(), "news", func(m store.Message) {
				select {
				case told <- string(m.Body):
				case <-e.Done():
				}
			})
			if err != nil {
				return err
			}
			e.Heartbeat(15 * time.Second)
			for {
				select {
				case text := <-told:
					if err := e.Send(dunlin.Event{Data: text}); err != nil {
						return err
					}
				case <-e.Done(): // the client has gone, or the server is about to end
					return nil
				}
			}
		})
	})

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, "GET", "https://notes.example/news", nil)
	resp, err := dunlintest.NewClient(app).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	go func() {
		for ctx.Err() == nil { // until the stream has subscribed, and is ended by the test
			_ = st.Publish(ctx, "news", []byte("hello"))
			runtime.Gosched()
		}
	}()
	if line, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil || line != "data: hello\n" {
		t.Errorf("the stream begins with %q, %v", line, err)
	}
}

func standardHandlers(t *testing.T, app *dunlin.App) {
	userKey := dunlin.NewKey[string]("user")
	onlyUsers := func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			userKey.Set(r, "ada")
			return next(r)
		}
	}
	greet := func(user string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "%s in %s", user, r.PathValue("room")) }
	}

	admin := http.NewServeMux() // or a router of chi
	admin.HandleFunc("GET /users/{id}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "user %s", r.PathValue("id"))
	})
	app.Mount("/admin", http.StripPrefix("/admin", admin), onlyUsers)

	app.Get("/rooms/{room}", func(r *dunlin.Request) dunlin.Response {
		user, _ := userKey.Get(r)
		return dunlin.FromStd(greet(user))(r)
	}, onlyUsers)

	for path, want := range map[string]string{"/admin/users/7": "user 7", "/rooms/red": "ada in red"} {
		resp, err := dunlintest.NewClient(app).Get("https://notes.example" + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || string(body) != want {
			t.Errorf("%s: got %s, %v", path, body, err)
		}
	}
}

// OnError answers the failures of Try. Refusals and the answers of the app keep their status.
func TestWhoseFailures(t *testing.T) {
	app := dunlin.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler)})
	app.OnError(func(*dunlin.Request, error) dunlin.Response { return dunlin.Text("mine").Status(418) })
	failing := func(*dunlin.Request) (dunlin.Response, error) { return dunlin.Response{}, errors.New("no") }
	app.Get("/try", dunlin.Try(failing))
	app.Get("/error", func(*dunlin.Request) dunlin.Response { return dunlin.Error(errors.New("no")) })
	app.Get("/refused", hello, middleware.KeyAuth(middleware.KeyAuthConfig{Check: middleware.Keys(map[string]string{"a": rand.Text()})}))
	for path, want := range map[string]int{"/try": 418, "/error": 500, "/refused": 401, "/none": 404} {
		resp, err := dunlintest.NewClient(app).Get("https://notes.example" + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: got %d", path, resp.StatusCode)
		}
	}
}
