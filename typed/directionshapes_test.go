package typed_test

import (
	"bytes"
	"encoding/json"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/typed"
)

type shapeLeaf struct {
	ID   int    `json:"id,omitempty" readOnly:"true"`
	Role string `json:"role" readOnly:"true" default:"user"`
	Name string `json:"name"`
	Pass string `json:"pass,omitempty" writeOnly:"true"`
}
type directPart struct {
	EID   int    `json:"eid,omitempty" readOnly:"true"`
	EPass string `json:"epass,omitempty" writeOnly:"true"`
}
type PointedPart struct {
	PID   int    `json:"pid,omitempty" readOnly:"true"`
	PPass string `json:"ppass,omitempty" writeOnly:"true"`
}
type manyShapes struct {
	namedPart
	directPart
	*PointedPart
	Leaf  shapeLeaf                 `json:"leaf"`
	Ptr   *shapeLeaf                `json:"ptr,omitempty"`
	List  []shapeLeaf               `json:"list"`
	PList []*shapeLeaf              `json:"plist"`
	Map   map[string]shapeLeaf      `json:"map"`
	PMap  map[string]*shapeLeaf     `json:"pmap"`
	LMap  map[string][]shapeLeaf    `json:"lmap"`
	Arr   [2]shapeLeaf              `json:"arr"`
	Opt   typed.Optional[shapeLeaf] `json:"opt,omitzero"`
	Nul   typed.Nullable[shapeLeaf] `json:"nul"`
	Sec   *shapeLeaf                `json:"sec,omitempty" writeOnly:"true"`
	RO    *shapeLeaf                `json:"ro,omitempty" readOnly:"true"`
	Rec   *manyShapes               `json:"rec,omitempty"`
	An    any                       `json:"an,omitempty"`
}
type namedPart struct {
	X string `json:"x,omitempty"`
}

func fullShapes(deep bool) manyShapes {
	l := shapeLeaf{ID: 1, Role: "admin", Name: "n", Pass: "hidden-value"}
	v := manyShapes{directPart: directPart{1, "hidden-value"}, PointedPart: &PointedPart{2, "hidden-value"}, Leaf: l, Ptr: &l, List: []shapeLeaf{l}, PList: []*shapeLeaf{&l}, Map: map[string]shapeLeaf{"a": l},
		PMap: map[string]*shapeLeaf{"a": &l}, LMap: map[string][]shapeLeaf{"a": {l}}, Arr: [2]shapeLeaf{l, l}, Opt: typed.Optional[shapeLeaf]{Value: l, Set: true}, Nul: typed.NullableOf(l), Sec: &l, RO: &l, An: l}
	if deep {
		r := fullShapes(false)
		v.Rec = &r
	}
	return v
}

type shapesIn struct{ Body manyShapes }

type shapeHolder[T any] struct {
	V T `json:"v"`
}

// Read-only and write-only apply to members of embedded structs, pointers, lists, arrays, maps and wrappers, in every kind of
// response.
func TestDirectionsInEveryShape(t *testing.T) {
	dunlintest.OnEngines(t, dunlin.Config{Logger: slog.New(slog.DiscardHandler)}, func(t *testing.T, app *dunlin.App) {
		typed.Get(app, "/plain", func(*dunlin.Request, typed.None) (manyShapes, error) { return fullShapes(true), nil })
		typed.Get(app, "/ptr", func(*dunlin.Request, typed.None) (*manyShapes, error) { v := fullShapes(true); return &v, nil })
		typed.Get(app, "/list", func(*dunlin.Request, typed.None) ([]manyShapes, error) { return []manyShapes{fullShapes(true)}, nil })
		typed.Get(app, "/map", func(*dunlin.Request, typed.None) (map[string]manyShapes, error) {
			return map[string]manyShapes{"k": fullShapes(true)}, nil
		})
		typed.Get(app, "/any", func(*dunlin.Request, typed.None) (any, error) { return fullShapes(true), nil })
		typed.Get(app, "/anymap", func(*dunlin.Request, typed.None) (map[string]any, error) {
			return map[string]any{"k": fullShapes(true)}, nil
		})
		typed.Get(app, "/created", func(*dunlin.Request, typed.None) (typed.Created[manyShapes], error) {
			return typed.Created[manyShapes]{Location: "/x", Body: fullShapes(true)}, nil
		})
		typed.Get(app, "/either", func(*dunlin.Request, typed.None) (typed.Either[manyShapes, typed.None], error) {
			return typed.First[manyShapes, typed.None](fullShapes(true)), nil
		})
		typed.Get(app, "/seq", func(*dunlin.Request, typed.None) (typed.Seq[manyShapes], error) {
			return func(y func(manyShapes, error) bool) { y(fullShapes(true), nil) }, nil
		})
		typed.Get(app, "/seq2", func(*dunlin.Request, typed.None) (iter.Seq2[manyShapes, error], error) {
			return func(y func(manyShapes, error) bool) { y(fullShapes(true), nil) }, nil
		})
		typed.Get(app, "/lines", func(*dunlin.Request, typed.None) (typed.Lines[manyShapes], error) {
			return func(y func(manyShapes, error) bool) { y(fullShapes(true), nil) }, nil
		})
		typed.Get(app, "/events", func(*dunlin.Request, typed.None) (typed.EventsOf[manyShapes], error) {
			return func(e *typed.Emitter[manyShapes]) error { return e.Emit(fullShapes(true)) }, nil
		})
		typed.Get(app, "/gen", func(*dunlin.Request, typed.None) (shapeHolder[[]shapeHolder[*shapeLeaf]], error) {
			l := fullShapes(false).Leaf
			return shapeHolder[[]shapeHolder[*shapeLeaf]]{V: []shapeHolder[*shapeLeaf]{{&l}}}, nil
		})
		app.Get("/json", func(*dunlin.Request) dunlin.Response { return dunlin.JSON(fullShapes(true), dunlin.JSONOmitWriteOnly) })
		app.Get("/jsonseq", func(*dunlin.Request) dunlin.Response {
			return dunlin.JSONSeq(func(y func(manyShapes) bool) { y(fullShapes(true)) }, dunlin.JSONOmitWriteOnly)
		})
		typed.Post(app, "/in", func(_ *dunlin.Request, in shapesIn) (typed.None, error) { return typed.None{}, nil })
		addr := dunlintest.Serve(t, app)
		for _, p := range []string{"plain", "ptr", "list", "map", "any", "anymap", "created", "either", "seq", "seq2", "lines", "events", "gen", "json", "jsonseq"} {
			resp, err := http.Get("http://" + addr + "/" + p)
			if err != nil {
				t.Fatal(err)
			}
			b, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if strings.Contains(string(b), "hidden-value") {
				t.Errorf("%s: got %d with a write-only member: %s", p, resp.StatusCode, b)
			}
			if !strings.Contains(string(b), `"admin"`) {
				t.Errorf("%s: got %d without a member: %s", p, resp.StatusCode, b)
			}
		}
		// requests
		ok := `{"leaf":{"name":"a"},"list":[],"plist":[],"map":{},"pmap":{},"lmap":{},"arr":[{"name":"a"},{"name":"a"}],"nul":null}`
		post := func(body string) (int, string) {
			resp, err := http.Post("http://"+addr+"/in", "application/json", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			b, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			return resp.StatusCode, string(b)
		}
		if c, b := post(ok); c != 204 {
			t.Fatalf("got %d %s", c, b)
		}
		bad := `{"name":"a","role":"admin"}`
		for _, r := range [][2]string{
			{`"leaf":{"name":"a"}`, `"leaf":` + bad}, {`"list":[]`, `"list":[` + bad + `]`}, {`"plist":[]`, `"plist":[` + bad + `]`}, {`"map":{}`, `"map":{"q":` + bad + `}`},
			{`"pmap":{}`, `"pmap":{"q":` + bad + `}`}, {`"lmap":{}`, `"lmap":{"q":[` + bad + `]}`}, {`[{"name":"a"},{"name":"a"}]`, `[` + bad + `,{"name":"a"}]`},
			{`"nul":null`, `"nul":` + bad}, {`"nul":null`, `"nul":null,"opt":` + bad}, {`"nul":null`, `"nul":null,"eid":3`}, {`"nul":null`, `"nul":null,"pid":3`}, {`"nul":null`, `"nul":null,"ro":{"name":"a"}`},
			{`"nul":null`, `"nul":null,"ro":null`}, {`"nul":null`, `"nul":null,"ptr":` + bad}, {`"nul":null`, `"nul":null,"rec":` + strings.Replace(ok, `"leaf":{"name":"a"}`, `"leaf":`+bad, 1)},
			{`"leaf":{"name":"a"}`, `"leaf":{"name":"a","\u0072ole":"admin"}`}, {`"leaf":{"name":"a"}`, `"leaf":{"name":"a","Role":"admin"}`},
		} {
			body := strings.Replace(ok, r[0], r[1], 1)
			if body == ok {
				t.Fatal(r)
			}
			if c, b := post(body); c == 204 {
				t.Errorf("%s: got %d %s", r[1], c, b)
			}
		}
	})
}

// With IgnoreReadOnly, read-only members are ignored in the same places.
func TestIgnoredReadOnlyInEveryShape(t *testing.T) {
	app := dunlin.New(dunlin.Config{})
	typed.Configure(app, typed.Config{IgnoreReadOnly: true})
	var got manyShapes
	typed.Post(app, "/in", func(_ *dunlin.Request, in shapesIn) (typed.None, error) { got = in.Body; return typed.None{}, nil })
	bad := `{"id":7,"name":"a","role":"admin","pass":"p"}`
	body := `{"eid":3,"pid":4,"epass":"p","leaf":B,"ptr":B,"list":[B],"plist":[B],"map":{"q":B},"pmap":{"q":B},"lmap":{"q":[B]},"arr":[B,B],"opt":B,"nul":B,"ro":B,"sec":B}`
	body = strings.ReplaceAll(body, "B", bad)
	r := httptest.NewRequest("POST", "/in", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	app.ServeHTTP(w, r)
	if w.Code != 204 {
		t.Fatal(w.Code, w.Body)
	}
	b, _ := json.Marshal(got)
	if bytes.Contains(b, []byte("admin")) || bytes.Contains(b, []byte("7")) || bytes.Contains(b, []byte(`id":`)) || bytes.Contains(b, []byte(`"ro"`)) || bytes.Count(b, []byte(`"p"`)) != 13 {
		t.Errorf("got %s", b)
	}
}
