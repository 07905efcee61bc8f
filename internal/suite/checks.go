package suite

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// Late is the error that the function of Unhurried returns if its time was too short.
type Late string

func (l Late) Error() string { return string(l) }

// Unhurried calls f with a time limit that a busy machine may exceed. If f returns Late, Unhurried calls it again with
// twice the time, a few times. Any other error fails the test.
func Unhurried(t *testing.T, first time.Duration, f func(d time.Duration) error) {
	t.Helper()
	for d := first; ; d *= 2 {
		err := f(d)
		if err == nil {
			return
		}
		if late := Late(""); !errors.As(err, &late) || d > Patience/4 {
			t.Fatal(err)
		}
		t.Logf("%v did not suffice: %v", d, err)
	}
}

// Ended reports whether err is the end or the reset of a connection, which a client sees if the server closes the
// connection before its first request.
func Ended(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// LogBuffer collects the log of an app under test, one line of text per record.
type LogBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *LogBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *LogBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// Logger returns a logger that writes to the buffer, from level on.
func (l *LogBuffer) Logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: level}))
}

// NewApp returns an app that logs errors to the returned buffer.
func NewApp(config dunlin.Config) (*dunlin.App, *LogBuffer) {
	logs := new(LogBuffer)
	if config.Logger == nil {
		config.Logger = logs.Logger(slog.LevelError)
	}
	return dunlin.New(config), logs
}

// Do runs one request through App.ServeHTTP.
func Do(app *dunlin.App, method, target string, headers ...string) *httptest.ResponseRecorder {
	return DoBody(app, method, target, "", headers...)
}

// DoBody is Do with a body.
func DoBody(app *dunlin.App, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	var src io.Reader
	if body != "" {
		src = strings.NewReader(body)
	}
	req := httptest.NewRequest(method, target, src)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	app.ServeHTTP(w, req)
	return w
}

// Respond answers GET / once with an action, and returns the client's view and the log.
func Respond(t *testing.T, act dunlin.Action) (w *httptest.ResponseRecorder, logged string) {
	t.Helper()
	app, logs := NewApp(dunlin.Config{})
	app.Get("/", act)
	app.Get("/last", Constant(dunlin.Error(errors.New("the last record"))))
	w = Do(app, http.MethodGet, "/")
	Do(app, http.MethodGet, "/last")
	WantLogged(t, logs, "the last record") // and all records before it
	for line := range strings.Lines(logs.String()) {
		if !strings.Contains(line, "the last record") {
			logged += line
		}
	}
	return w, logged
}

// RespondWith is Respond for a response that needs no request.
func RespondWith(t *testing.T, build func() dunlin.Response) (w *httptest.ResponseRecorder, logged string) {
	t.Helper()
	return Respond(t, func(*dunlin.Request) dunlin.Response { return build() })
}

// Constant is the action that always answers resp.
func Constant(resp dunlin.Response) dunlin.Action {
	return func(*dunlin.Request) dunlin.Response { return resp }
}

// Text is the action that answers 200 with s.
func Text(s string) dunlin.Action { return Constant(dunlin.Text(s)) }

// PanicText returns the text of f's panic, or "".
func PanicText(f func()) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text, _ = v.(string)
			if text == "" {
				text = "not a string"
			}
		}
	}()
	f()
	return ""
}

// WantContains fails the test for each of the parts that text does not contain.
func WantContains(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s lacks %q:\n%s", what, part, text)
		}
	}
}

// WantLogged fails the test for each of the parts that the log does not contain. It waits for them, since a record may be
// written after its event.
func WantLogged(t *testing.T, logs *LogBuffer, parts ...string) {
	t.Helper()
	for _, part := range parts {
		Soon(t, fmt.Sprintf("%q in the log", part), func() bool { return strings.Contains(logs.String(), part) })
	}
}

// WantLacks fails the test for each of the parts that text contains.
func WantLacks(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("%s holds %q:\n%s", what, part, text)
		}
	}
}

// A Gate blocks actions. Each value that the test sends to Open lets one action continue.
type Gate struct {
	Entered chan struct{} // receives a value from each action that arrives
	Open    chan struct{} // each value lets one action continue
}

// NewGate returns a closed gate.
func NewGate() *Gate { return &Gate{make(chan struct{}, 100), make(chan struct{}, 100)} }

// Pass is called by an action. It blocks until it gets a value from Open.
func (g *Gate) Pass() {
	g.Entered <- struct{}{}
	<-g.Open
}

// Await waits for an action to arrive at the gate.
func (g *Gate) Await(t *testing.T) {
	t.Helper()
	Await(t, "an action at the gate", g.Entered)
}

// WantEnd checks that the server closes the connection without further bytes.
func WantEnd(t *testing.T, br *bufio.Reader) {
	t.Helper()
	if rest, err := io.ReadAll(br); err != nil || len(rest) > 0 {
		t.Fatalf("instead of the end came %q, %v", rest, err)
	}
}

// Answered reads an answer to GET, which must have the status and the body.
func Answered(t *testing.T, br *bufio.Reader, status int, body string) {
	t.Helper()
	got, err := ReadAnswer(br, http.MethodGet)
	if err != nil {
		t.Fatalf("instead of %d %q: %v", status, body, err)
	}
	head, gotBody, _ := strings.Cut(got, "\n\n")
	if head[9:12] != strconv.Itoa(status) || gotBody != body {
		t.Fatalf("answered with\n%s\nwant %d %q", got, status, body)
	}
}

// Discard is a ResponseWriter that discards its output, like that of a server that reuses its header map.
type Discard struct{ header http.Header }

// NewDiscard returns a Discard with an empty header map.
func NewDiscard() *Discard { return &Discard{make(http.Header)} }

func (d *Discard) Header() http.Header         { return d.header }
func (d *Discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *Discard) WriteHeader(int)             {}
