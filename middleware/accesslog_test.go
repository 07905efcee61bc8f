package middleware_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
)

// jsonLog returns a logger and a function that returns the only line written so far.
func jsonLog(t *testing.T) (*slog.Logger, func() map[string]any) {
	var buf bytes.Buffer
	return slog.New(slog.NewJSONHandler(&buf, nil)), func() map[string]any {
		t.Helper()
		var line map[string]any
		if err := json.Unmarshal(buf.Bytes(), &line); err != nil {
			t.Fatalf("the log is not one JSON line: %v: got %s", err, buf.Bytes())
		}
		return line
	}
}

func TestAccessLog(t *testing.T) {
	const seven = "7 bytes"
	for name, test := range map[string]struct {
		method string
		act    dunlin.Action
		status float64
		bytes  any // nil: omitted
	}{
		"text":       {"GET", text(seven), 200, 7.0},
		"head":       {"HEAD", text(seven), 200, 0.0},
		"created":    {"POST", func(*dunlin.Request) dunlin.Response { return dunlin.Text(seven).Status(201) }, 201, 7.0},
		"no content": {"DELETE", func(*dunlin.Request) dunlin.Response { return dunlin.Text(seven).Status(204) }, 204, 0.0},
		"not modified": {"GET", func(*dunlin.Request) dunlin.Response { return dunlin.Text(seven).Status(304) },
			304, 0.0},
		"error": {"GET", func(*dunlin.Request) dunlin.Response { return dunlin.Error(errors.New("a secret")) },
			500, float64(len(`{"title":"Internal Server Error","status":500}`))},
		"nothing": {"GET", func(*dunlin.Request) dunlin.Response { return dunlin.Response{} }, 500, 46.0},
		"short stream": {"GET", func(*dunlin.Request) dunlin.Response {
			return dunlin.Stream("text/plain", func(w io.Writer) error { _, err := io.WriteString(w, seven); return err })
		}, 200, 7.0},
		"stream": {"GET", func(*dunlin.Request) dunlin.Response {
			return dunlin.Stream("text/plain", func(w io.Writer) error { return dunlin.Flush(w) })
		}, 200, nil},
	} {
		logger, line := jsonLog(t)
		w := send(installed(test.act, middleware.AccessLog(middleware.AccessLogConfig{Logger: logger})), test.method)
		got := line()
		if got["status"] != test.status || float64(w.Code) != test.status || got["bytes"] != test.bytes {
			t.Errorf("%s: logged status %v and %v bytes for a response with status %d, want %v and %v", name, got["status"], got["bytes"], w.Code, test.status, test.bytes)
		}
		for attr, want := range map[string]any{
			"level": "INFO", "msg": "request", "method": test.method,
			"path": "/items/7", "route": "/items/{id}", "remote": "192.0.2.1:1234",
		} {
			if got[attr] != want {
				t.Errorf("%s: attribute %s: got %v, want %v", name, attr, got[attr], want)
			}
		}
		if id, _ := got["id"].(string); len(id) != 26 {
			t.Errorf("%s: got id %v, want the 26 characters of Request.ID", name, got["id"])
		}
		if d, ok := got["duration_ms"].(float64); !ok || d < 0 || d*1000-math.Round(d*1000) > 1e-6 || d > float64(time.Hour/time.Millisecond) || got["duration_us"] != nil {
			t.Errorf("%s: got duration_ms %v, want milliseconds with three decimals, and no duration_us", name, got["duration_ms"])
		}
	}
}

func TestAccessLogUnmatched(t *testing.T) {
	logger, line := jsonLog(t)
	app := installed(text("hello"), middleware.AccessLog(middleware.AccessLogConfig{Logger: logger}))
	app.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/nowhere", nil))
	if got := line(); got["status"] != 404.0 || got["route"] != "" {
		t.Errorf("got status %v and route %q, want 404 and no route", got["status"], got["route"])
	}
}

func TestAccessLogPanic(t *testing.T) {
	logger, line := jsonLog(t)
	app := installed(func(*dunlin.Request) dunlin.Response { panic("asked for") }, middleware.AccessLog(middleware.AccessLogConfig{Logger: logger}))
	w := send(app, "GET")
	got := line()
	if got["status"] != 500.0 || got["msg"] != "request" || got["path"] != "/items/7" || w.Code != 500 {
		t.Errorf("got log line %v and status %d, want 500 for /items/7", got, w.Code)
	}
}

func TestAccessLogWithoutLogger(t *testing.T) {
	var buf bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&buf, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if w := send(installed(text("hello"), middleware.AccessLog(middleware.AccessLogConfig{Logger: logger})), "GET"); w.Body.String() != "hello" || buf.Len() > 0 {
		t.Errorf("got response %q and log %q, want hello and no log", w.Body, &buf)
	}
}

func TestAccessLogDefaultLogger(t *testing.T) {
	before := slog.Default()
	defer slog.SetDefault(before)
	logger, line := jsonLog(t)
	slog.SetDefault(logger)
	send(installed(text("hello"), middleware.AccessLog(middleware.AccessLogConfig{})), "GET")
	if got := line(); got["status"] != 200.0 {
		t.Errorf("default logger: got %v, want status 200", got)
	}
}

func ExampleAccessLog() {
	// Time and address differ between runs; this example omits them.
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			switch a.Key {
			case slog.TimeKey, "duration_ms", "remote":
				return slog.Attr{}
			}
			return a
		},
	}))
	app := dunlin.New(dunlin.Config{})
	app.Install(middleware.RequestID("X-Request-ID"), middleware.AccessLog(middleware.AccessLogConfig{Logger: logger}))
	app.Get("/users/{id}", func(r *dunlin.Request) dunlin.Response { return dunlin.Text("user " + r.Param("id")) })

	req := httptest.NewRequest("GET", "/users/7", nil)
	req.Header.Set("X-Request-ID", "a1")
	app.ServeHTTP(httptest.NewRecorder(), req)
	// Output:
	// level=INFO msg=request method=GET path=/users/7 route=/users/{id} status=200 bytes=6 id=a1
}

func TestAccessLogConfig(t *testing.T) {
	logger, line := jsonLog(t)
	c := middleware.AccessLogConfig{
		Logger: logger,
		Unit:   time.Microsecond,
		Skip:   func(info *dunlin.AnswerInfo) bool { return info.Header("X-Probe") != "" },
		Level: func(info *dunlin.AnswerInfo) slog.Level {
			if info.Status() >= 500 {
				return slog.LevelError
			}
			return slog.LevelInfo
		},
		Attrs: func(info *dunlin.AnswerInfo, attrs []slog.Attr) []slog.Attr {
			return append(attrs, slog.String("agent", info.Header("User-Agent")))
		},
	}
	app := installed(func(*dunlin.Request) dunlin.Response { return dunlin.Empty().Status(502) }, middleware.AccessLog(c))
	send(app, "GET", "X-Probe", "1") // skipped: writes no line
	send(app, "GET", "User-Agent", "a browser")
	got := line()
	if us, ok := got["duration_us"].(float64); !ok || us != math.Trunc(us) || us < 0 || got["duration_ms"] != nil || got["duration"] != nil || got["level"] != "ERROR" || got["agent"] != "a browser" || got["status"] != 502.0 {
		t.Errorf("logged %v", got)
	}
	for _, unit := range []time.Duration{time.Minute, -1, 7} {
		mustPanic(t, unit.String(), func() { middleware.AccessLog(middleware.AccessLogConfig{Unit: unit}) })
	}
}

func ExampleAccessLogConfig() {
	log := middleware.AccessLogConfig{
		Logger: slog.New(slog.NewTextHandler(os.Stdout, nil)),
		Skip:   func(info *dunlin.AnswerInfo) bool { return info.Route() == "/health" },
		Attrs: func(info *dunlin.AnswerInfo, attrs []slog.Attr) []slog.Attr {
			return append(attrs, slog.String("agent", info.Header("User-Agent")))
		},
		Unit: time.Millisecond,
	}
	app := dunlin.New(dunlin.Config{})
	app.Install(middleware.AccessLog(log))
	app.Get("/health", func(*dunlin.Request) dunlin.Response { return dunlin.Text("ok") })
	app.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/health", nil))
	// Output:
}
