package dunlin_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

type cyclic struct{ Next *cyclic }

type panicking struct{}

func (panicking) MarshalJSON() ([]byte, error) { panic("from MarshalJSON") }

type failing struct{}

func (failing) MarshalText() ([]byte, error) { return nil, errors.New("from MarshalText") }

type garbage struct{}

func (garbage) MarshalJSON() ([]byte, error) { return []byte(`{"half`), nil }

func cycle() *cyclic {
	c := new(cyclic)
	c.Next = c
	return c
}

// A value that cannot be encoded gives a complete 500 response, without a partial body and without the cause.
func TestJSONFailures(t *testing.T) {
	for name, c := range map[string]struct {
		build func() dunlin.Response
		why   string
	}{
		"NaN":               {func() dunlin.Response { return dunlin.JSON([]float64{1, math.NaN()}) }, "/1: unsupported value: NaN"},
		"infinity":          {func() dunlin.Response { return dunlin.JSON(math.Inf(1)) }, "+Inf"},
		"channel":           {func() dunlin.Response { return dunlin.JSON(map[string]any{"ok": 1, "zz": make(chan int)}) }, "/zz: unsupported type: chan int"},
		"function":          {func() dunlin.Response { return dunlin.JSON(func() {}) }, "func()"},
		"cycle":             {func() dunlin.Response { return dunlin.JSON(cycle()) }, "cycle"},
		"error of a method": {func() dunlin.Response { return dunlin.JSON([]failing{{}}) }, "from MarshalText"},
		"panic of a method": {func() dunlin.Response { return dunlin.JSON(panicking{}) }, "from MarshalJSON"},
		"garbage of method": {func() dunlin.Response { return dunlin.JSON(garbage{}) }, "garbage"},
		"bad raw message":   {func() dunlin.Response { return dunlin.JSON(json.RawMessage("{")) }, "unexpected end of JSON input"},
		"bad number":        {func() dunlin.Response { return dunlin.JSON(json.Number("x")) }, "x"},
		"element":           {func() dunlin.Response { return dunlin.JSONSeq(floats(0, 1, math.NaN())) }, "element 2"},
		"first element":     {func() dunlin.Response { return dunlin.JSONSeq(floats(math.NaN())) }, "element 0"},
		"panic of a seq":    {func() dunlin.Response { return dunlin.JSONSeq(panickingSeq) }, "from the sequence"},
		"panic of element":  {func() dunlin.Response { return dunlin.JSONSeq(func(y func(panicking) bool) { y(panicking{}) }) }, "from MarshalJSON"},
		"problem extensions": {func() dunlin.Response {
			return dunlin.Problem(&dunlin.ProblemDetails{Status: 400, Extensions: map[string]any{"c": make(chan int)}})
		}, "chan int"},
		"panic in extension": {func() dunlin.Response {
			return dunlin.Problem(&dunlin.ProblemDetails{Status: 400, Extensions: map[string]any{"c": panicking{}}})
		}, "from MarshalJSON"},
	} {
		t.Run(name, func(t *testing.T) {
			w, logged := respondWith(t, c.build)
			if w.Code != 500 || w.Body.String() != `{"title":"Internal Server Error","status":500}` || w.Header().Get("Content-Length") != "46" {
				t.Errorf("got %d %v %s", w.Code, w.Header(), w.Body)
			}
			wantContains(t, "log", logged, "level=ERROR", c.why, "route=/", "method=GET")
		})
	}
}

func floats(values ...float64) iter.Seq[float64] {
	return func(yield func(float64) bool) {
		for _, v := range values {
			if !yield(v) {
				return
			}
		}
	}
}

func panickingSeq(yield func(int) bool) {
	if yield(1) {
		panic("from the sequence")
	}
}

// After an element that cannot be encoded, the sequence is not called for more.
func TestJSONSeqStops(t *testing.T) {
	asked := 0
	r := dunlin.JSONSeq(func(yield func(any) bool) {
		for _, v := range []any{1, make(chan int), 3} {
			asked++
			if !yield(v) {
				return
			}
		}
	})
	if r.StatusCode() != 500 || asked != 2 {
		t.Errorf("got status %d after %d elements, want 500 after 2", r.StatusCode(), asked)
	}
}

// A sequence that ignores yield's false affects neither later requests on the connection nor the process.
func TestJSONSeqIgnoringStop(t *testing.T) {
	endless := func(yield func(int) bool) {
		for {
			yield(1)
		}
	}
	t.Run("HEAD", func(t *testing.T) {
		onEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
			addr, logs := start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
				app.Handle("HEAD", "/", func(*dunlin.Request) dunlin.Response { return dunlin.JSONSeq(endless) })
				app.Get("/probe", text("probe"))
			})
			conn := dial(t, addr)
			br := bufio.NewReader(conn)
			send(t, conn, req("HEAD /"))
			if got, err := readAnswer(br, "HEAD"); err != nil || got[9:12] != "200" {
				t.Errorf("got %q, %v", got, err)
			}
			send(t, conn, req("GET /probe"))
			answered(t, br, 200, "probe")
			wantLogged(t, logs, "panic in a sequence that was stopped")
		})
	})
	t.Run("never sent", func(t *testing.T) {
		logs := new(logBuffer)
		defer slog.SetDefault(slog.Default())
		slog.SetDefault(logs.Logger(slog.LevelError))
		_ = dunlin.JSONSeq(endless)
		soon(t, "it is stopped", func() bool {
			runtime.GC()
			return strings.Contains(logs.String(), "panic in a sequence that was stopped")
		})
	})
}

// The caller may change the value once JSON has returned.
func TestJSONEncodesImmediately(t *testing.T) {
	v := map[string]int{"a": 1}
	w, _ := respond(t, func(*dunlin.Request) dunlin.Response {
		r := dunlin.JSON(v)
		v["a"] = 2
		return r
	})
	if w.Body.String() != `{"a":1}` {
		t.Errorf("got body %s", w.Body)
	}
}

// Pooled memory of one body never appears in another response.
func TestJSONBodiesAreIndependent(t *testing.T) {
	var kept []dunlin.Response
	for i := range 50 {
		kept = append(kept, dunlin.JSON(strings.Repeat(string(rune('a'+i%26)), 10+100*i)))
	}
	for i, r := range kept {
		want, err := json.Marshal(strings.Repeat(string(rune('a'+i%26)), 10+100*i))
		if err != nil || string(r.Body()) != string(want) {
			t.Fatalf("response %d: got %.40s…", i, r.Body())
		}
	}
}

func TestJSONNilAsEmpty(t *testing.T) {
	type values struct {
		S []int
		M map[string]int
		B []byte
		P *int
		N [][]int
	}
	v := values{N: make([][]int, 1)}
	for _, c := range []struct {
		resp dunlin.Response
		want string
	}{
		{dunlin.JSON(v), `{"S":null,"M":null,"B":null,"P":null,"N":[null]}`},
		{dunlin.JSON(v, dunlin.JSONNilAsEmpty), `{"S":[],"M":{},"B":"","P":null,"N":[[]]}`},
		{dunlin.JSON([]any{[]int(nil), map[string]any(nil)}, dunlin.JSONNilAsEmpty), `[[],{}]`},
	} {
		if got := string(c.resp.Body()); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}
