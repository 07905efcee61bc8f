package datastar_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/datastar"
	"github.com/dunlinhttp/dunlin/dunlintest"
)

func answer(act dunlin.Action, r *http.Request) *httptest.ResponseRecorder {
	app := dunlin.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler)})
	app.Handle("GET, POST, DELETE", "/", act)
	w := httptest.NewRecorder()
	app.ServeHTTP(w, r)
	return w
}

func Example() {
	greet := func(r *dunlin.Request) dunlin.Response {
		var in struct {
			Name string `json:"name"`
		}
		if err := datastar.ReadSignals(r, &in); err != nil {
			return dunlin.Error(err)
		}
		return datastar.Answer(r,
			datastar.Elements{HTML: `<p id="greeting">Hello, ` + url.PathEscape(in.Name) + `</p>`},
			datastar.Signals{Values: map[string]any{"name": ""}})
	}
	fmt.Print(answer(greet, httptest.NewRequest("POST", "/", strings.NewReader(`{"name":"Ada"}`))).Body)
	// Output:
	// event: datastar-patch-elements
	// data: elements <p id="greeting">Hello, Ada</p>
	//
	// event: datastar-patch-signals
	// data: signals {"name":""}
}

type component string

func (c component) Render(_ context.Context, w io.Writer) error {
	if c == "" {
		return errors.New("broken")
	}
	_, err := io.WriteString(w, string(c))
	return err
}

// The events of the test cases of the Datastar SDK, and options that are newer.
func TestEvents(t *testing.T) {
	for name, c := range map[string]struct {
		patch datastar.Patch
		want  string
	}{
		"elements":            {datastar.Elements{HTML: "<div>Merge</div>"}, "event: datastar-patch-elements\ndata: elements <div>Merge</div>\n\n"},
		"elements, defaults":  {datastar.Elements{HTML: "<div>Merge</div>", Mode: datastar.ModeOuter, Namespace: "html"}, "event: datastar-patch-elements\ndata: elements <div>Merge</div>\n\n"},
		"component":           {datastar.Elements{Component: component("<div>Merge</div>")}, "event: datastar-patch-elements\ndata: elements <div>Merge</div>\n\n"},
		"elements in lines":   {datastar.Elements{HTML: "<div>\n  <span>Merge</span>\r\n</div>"}, "event: datastar-patch-elements\ndata: elements <div>\ndata: elements   <span>Merge</span>\ndata: elements </div>\n\n"},
		"elements, all":       {datastar.Elements{HTML: "<div>Merge</div>", Selector: "div", Mode: datastar.ModeAppend, ViewTransition: true, ID: "event1", Retry: 2 * time.Second}, "event: datastar-patch-elements\nid: event1\nretry: 2000\ndata: selector div\ndata: mode append\ndata: useViewTransition true\ndata: elements <div>Merge</div>\n\n"},
		"elements, newer":     {datastar.Elements{HTML: "<circle/>", Namespace: "svg", ViewTransitionSelector: "#a"}, "event: datastar-patch-elements\ndata: namespace svg\ndata: viewTransitionSelector #a\ndata: elements <circle/>\n\n"},
		"elements to remove":  {datastar.RemoveElements("#target"), "event: datastar-patch-elements\ndata: selector #target\ndata: mode remove\n\n"},
		"signals":             {datastar.Signals{Values: map[string]int{"one": 1, "two": 2}}, "event: datastar-patch-signals\ndata: signals {\"one\":1,\"two\":2}\n\n"},
		"signals, all":        {datastar.Signals{Values: map[string]int{"one": 1, "two": 2}, OnlyIfMissing: true, ID: "event1", Retry: 2 * time.Second}, "event: datastar-patch-signals\nid: event1\nretry: 2000\ndata: onlyIfMissing true\ndata: signals {\"one\":1,\"two\":2}\n\n"},
		"signals, text":       {datastar.Signals{Values: map[string]string{"one": "first\n signal"}}, "event: datastar-patch-signals\ndata: signals {\"one\":\"first\\n signal\"}\n\n"},
		"signals to remove":   {datastar.Signals{Values: json.RawMessage("{\"one\":null,\n\"two\":{\"alpha\":null}}")}, "event: datastar-patch-signals\ndata: signals {\"one\":null,\"two\":{\"alpha\":null}}\n\n"},
		"script":              {datastar.Script{Code: "console.log('hello');"}, "event: datastar-patch-elements\ndata: selector body\ndata: mode append\ndata: elements <script data-effect=\"el.remove()\">console.log('hello');</script>\n\n"},
		"script, all":         {datastar.Script{Code: "console.log('hello');", Keep: true, Attributes: []string{`type="text/javascript"`, `blocking="false"`}, ID: "event1", Retry: 2 * time.Second}, "event: datastar-patch-elements\nid: event1\nretry: 2000\ndata: selector body\ndata: mode append\ndata: elements <script type=\"text/javascript\" blocking=\"false\">console.log('hello');</script>\n\n"},
		"script in two lines": {datastar.Script{Code: "if (true) {\n}"}, "event: datastar-patch-elements\ndata: selector body\ndata: mode append\ndata: elements <script data-effect=\"el.remove()\">if (true) {\ndata: elements }</script>\n\n"},
	} {
		w := answer(func(r *dunlin.Request) dunlin.Response { return datastar.Answer(r, c.patch) }, httptest.NewRequest("GET", "/", nil))
		if got := w.Body.String(); got != c.want || w.Header().Get("Content-Type") != "text/event-stream" || w.Header().Get("Cache-Control") != "no-cache" {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, w.Header(), got, c.want)
		}
	}
}

func TestBrokenPatchesSendNothing(t *testing.T) {
	for name, p := range map[string]datastar.Patch{
		"selector with a line":    datastar.Elements{HTML: "<p>", Selector: "#a\nelements <script>"},
		"mode with a line":        datastar.Elements{HTML: "<p>", Mode: "append\r"},
		"ID with a line":          datastar.Elements{HTML: "<p>", ID: "1\ndata: x"},
		"component":               datastar.Elements{Component: component("")},
		"signals are no object":   datastar.Signals{Values: "text"},
		"signals are not JSON":    datastar.Signals{Values: func() {}},
		"script that ends":        datastar.Script{Code: `alert("</SCRIPT>")`},
		"script with an HTML end": datastar.Script{Code: `x <!-- y`},
	} {
		first := datastar.Elements{HTML: "<p id=a>"}
		w := answer(func(r *dunlin.Request) dunlin.Response { return datastar.Answer(r, first, p) }, httptest.NewRequest("GET", "/", nil))
		if w.Code != 500 || strings.Contains(w.Body.String(), "elements") {
			t.Errorf("%s: got %d %s", name, w.Code, w.Body)
		}
	}
}

func TestSend(t *testing.T) {
	app := dunlin.New(dunlin.Config{})
	app.Get("/", func(*dunlin.Request) dunlin.Response {
		return dunlin.SSE(func(e *dunlin.Events) error {
			return datastar.Send(e, datastar.Elements{HTML: "<div>Merge</div>"}, datastar.Elements{HTML: "<div>Merge 2</div>"})
		})
	})
	resp, err := dunlintest.NewClient(app).Get("http://test.example/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if want := "event: datastar-patch-elements\ndata: elements <div>Merge</div>\n\nevent: datastar-patch-elements\ndata: elements <div>Merge 2</div>\n\n"; err != nil || string(body) != want {
		t.Errorf("%v: got %s", err, body)
	}
}

func TestReadSignals(t *testing.T) {
	read := func(r *dunlin.Request) dunlin.Response {
		in := struct{ Count int }{-1}
		if err := datastar.ReadSignals(r, &in); err != nil {
			return dunlin.Error(err)
		}
		return dunlin.Text(fmt.Sprint(in.Count, datastar.Is(r)))
	}
	query := "/?datastar=" + url.QueryEscape(`{"count":3,"other":"x"}`)
	for _, c := range []struct{ method, target, body, want string }{
		{"GET", query, "", "3 true"},
		{"DELETE", query, "", "3 true"},
		{"GET", "/", "", "-1 true"},
		{"POST", "/", `{"count":4}`, "4 true"},
		{"POST", "/", "", "-1 true"},
		{"GET", "/?datastar={", "", ""},
		{"POST", "/", `{"count":"many"}`, ""},
	} {
		r := httptest.NewRequest(c.method, c.target, strings.NewReader(c.body))
		r.Header.Set("Datastar-Request", "true")
		w := answer(read, r)
		if c.want == "" && w.Code != 400 || c.want != "" && w.Body.String() != c.want {
			t.Errorf("%s %s %s: got %d %s", c.method, c.target, c.body, w.Code, w.Body)
		}
	}
}
