package typed_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/invariants"
	"github.com/dunlinhttp/dunlin/typed"
)

// strict has members of all kinds, for invalid texts of each kind.
type strict struct {
	Name  string            `json:"name,omitempty" minLength:"1" pattern:"^[a-z]*$"`
	Any   any               `json:"any,omitempty"`
	Bag   []any             `json:"bag,omitempty" uniqueItems:"true"`
	Kids  []strict          `json:"kids,omitempty"`
	Sets  []strict          `json:"sets,omitempty" uniqueItems:"true"`
	Wide  []wide            `json:"wide,omitempty"`
	Lazy  []lazy            `json:"lazy,omitempty"`
	Map   map[string]strict `json:"map,omitempty"`
	Texts map[string]string `json:"texts,omitempty"`
	Sizes []cut             `json:"sizes,omitempty"`
	Nums  []float64         `json:"nums,omitempty" items.multipleOf:"0.5"`
	Ints  []int             `json:"ints,omitempty"`
	At    *time.Time        `json:"at,omitempty"`
	Span  string            `json:"span,omitempty" format:"go-duration"`
	Raw   json.RawMessage   `json:"raw,omitempty"`
	Bytes []byte            `json:"bytes,omitempty"`
}

type cut string

func (cut) Enum() []cut { return []cut{"small", "medium", cut(strings.Repeat("large", 200))} }

// wide has many required members, and lazy has many members with defaults.
type wide struct {
	A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R, S, T int
}

type lazy struct {
	A string `default:"a"`
	B string `default:"b"`
	C string `default:"c"`
	D int    `default:"4"`
	E int    `default:"5"`
	F int    `default:"6"`
	G bool   `default:"true"`
	H bool   `default:"true"`
}

// checkedTree has rules in code at each level of a recursive type.
type checkedTree struct {
	Name string                 `json:"name,omitempty"`
	Map  map[string]checkedTree `json:"map,omitempty"`
	List []checkedTree          `json:"list,omitempty"`
}

func (n *checkedTree) Validate(c *typed.Checks) { c.Check(n.Name != "bad", "#/name", "good", "is bad") }

// fill makes a text of about n bytes: a head, a comma-separated repetition of unit, and a tail.
func fill(n int, head, unit, tail string) string {
	times := max(1, (n-len(head)-len(tail))/(len(unit)+1))
	return head + strings.TrimSuffix(strings.Repeat(unit+",", times), ",") + tail
}

// nest wraps a text in many levels.
func nest(levels int, open, inside, end string) string {
	return strings.Repeat(open, levels) + inside + strings.Repeat(end, levels)
}

// expensive returns bodies of about n bytes that are expensive to decode. An object has at most 90,000 elements.
func expensive(n int) map[string]string {
	half := `"\ud800"`
	long := strings.Repeat(`\n`, n/2)
	deepNames := func(inside string) string {
		return `{"x":` + nest(990, `{"`+strings.Repeat(" ", 100)+`":`, inside, "}") + "}"
	}
	plain := strings.Repeat("a", n/2)
	few := func(unit string) int { return min(n/2, 90_000*(len(unit)+1)) }
	return map[string]string{
		"bad strings under deep long names":    deepNames(fill(few(half), "[", half, "]")),
		"bad strings under deep escaped names": `{"x":` + nest(990, `{"`+strings.Repeat(`\u0020`, 100)+`":`, fill(few(half), "[", half, "]"), "}") + "}",
		"long escaped name":                    `{"` + long + `":` + fill(few(half), "[", half, "]") + "}",
		"long plain name":                      `{"` + plain + `":` + fill(few(half), "[", half, "]") + "}",
		"name that ends in escapes":            `{"` + plain + `\n":` + fill(few(half), "[", half, "]") + "}",
		"unknown members":                      fill(few(`"unknown":1`), "{", `"unknown":1`, "}"),
		"long unknown members":                 fill(n, "{", `"`+strings.Repeat(`\n`, 5000)+`":1`, "}"),
		"missing members":                      fill(few("{}"), `{"wide":[`, "{}", "]}"),
		"defaults and an unknown member":       fill(few("{}"), `{"lazy":[`, "{}", `],"x":1}`),
		"wrong elements":                       fill(few("1"), `{"kids":[`, "1", "]}"),
		"long enumeration":                     fill(few(`"x"`), `{"sizes":[`, `"x"`, "]}"),
		"recursive type":                       nest(400, `{"kids":[`, fill(few("{}"), `{"wide":[`, "{}", "]}"), "]}"),
		"maps in maps":                         nest(400, `{"map":{"`+strings.Repeat("k", 100)+`":`, fill(few("1"), `{"kids":[`, "1", "]}"), "}}"),
		"duplicate names":                      fill(few(`"abc":"d"`), `{"texts":{`, `"abc":"d"`, "}}"),
		"bag of deep objects":                  `{"bag":[` + nest(900, `{"a":`, `"`+plain+`"`, "}") + "," + nest(900, `{"a":`, `"`+plain+`"`, "}") + "]}",
		"sets in sets":                         nest(480, `{"sets":[{},`, `{"name":"`+plain+`","x":1}`, "]}"),
		"sets in sets with white space":        nest(480, `{"sets":[{},`, `{"kids":[`+strings.Repeat(" ", n/2)+`],"x":1}`, "]}"),
		"long time":                            `{"at":"` + plain + plain + `"}`,
		"long duration":                        `{"span":"` + plain + plain + `"}`,
		"long pattern":                         `{"name":"` + plain + strings.ToUpper(plain) + `"}`,
		"bad base64":                           `{"bytes":"` + plain + plain + `!"}`,
		"infinite numbers":                     fill(few("1e999"), `{"nums":[`, "1e999", "]}"),
		"long numbers":                         fill(n, `{"nums":[`, strings.Repeat("9", 990)+".3", "]}"),
		"odd multiples":                        fill(few("1e300"), `{"nums":[`, "1e300", `,0.3]}`),
		"fractions":                            fill(few("1.0"), `{"ints":[`, "1.0", `,0.3]}`),
		"too deep":                             `{"any":` + strings.Repeat("[", n/2),
		"truncated array":                      fill(few("1"), `{"ints":[`, "1", "]"),
		"truncated array with line breaks":     `{"any":[` + strings.Repeat("\n", n) + "}",
		"too many elements":                    fill(n, `{"ints":[`, "1", "]}"),
		"two elements and white space":         `{"wide":[{},{}` + strings.Repeat(" ", n) + "]}",
		"raw member and an unknown member":     `{"raw":"` + plain + plain + `","x":1}`,
	}
}

// allocatedBy returns the number of bytes that f allocates.
func allocatedBy(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A refused body costs no more than an accepted body, for every kind of error, and its answer is short.
func TestExpensiveBodies(t *testing.T) {
	if invariants.Enabled {
		t.Skip("race builds allocate more")
	}
	const size = 1 << 20
	app := dunlin.New(dunlin.Config{})
	type input struct{ Body strict }
	typed.Post(app, "/", func(*dunlin.Request, input) (typed.None, error) { return typed.None{}, nil })
	type validated struct{ Body checkedTree }
	typed.Post(app, "/checked", func(*dunlin.Request, validated) (typed.None, error) { return typed.None{}, nil })
	type list struct{ Body []wide }
	typed.Post(app, "/list", func(*dunlin.Request, list) (typed.None, error) { return typed.None{}, nil })
	type pairs struct{ Body []lazy }
	typed.Post(app, "/pairs", func(*dunlin.Request, pairs) (typed.None, error) { return typed.None{}, nil })
	app.Post("/decode-pairs", func(r *dunlin.Request) dunlin.Response {
		if _, err := dunlin.Decode[[]wide](r); err != nil {
			return dunlin.Error(err)
		}
		return dunlin.NoContent()
	})
	cost := func(path, body string, want int) {
		t.Helper()
		var w *httptest.ResponseRecorder
		least := ^uint64(0)
		for range 2 { // the first run fills the pools
			r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			w = httptest.NewRecorder()
			least = min(least, allocatedBy(func() { app.ServeHTTP(w, r) }))
		}
		if w.Code != want {
			t.Errorf("got %d, want %d: %.300s", w.Code, want, w.Body)
		}
		if w.Body.Len() > 64<<10 {
			t.Errorf("got a response of %d bytes", w.Body.Len())
		}
		// A valid body of that size, of short objects, costs 40 times its length in this app.
		if most := uint64(10*len(body) + 512<<10); least > most {
			t.Errorf("got %d allocated bytes for a body of %d bytes, want at most %d", least, len(body), most)
		}
	}
	for name, body := range expensive(size) {
		t.Run(name, func(t *testing.T) { cost("/", body, http.StatusBadRequest) })
	}
	pair := "[{},{}" + strings.Repeat(" ", size) + "]"
	for path, want := range map[string]int{"/list": http.StatusBadRequest, "/pairs": http.StatusNoContent, "/decode-pairs": http.StatusNoContent} {
		t.Run("two elements and white space, "+path, func(t *testing.T) { cost(path, pair, want) })
	}
	// Calls of Validate build pointers only for violations.
	name := strings.Repeat("n", 4000)
	for body, want := range map[string]int{
		nest(250, `{"map":{"`+name+`":`, "{}", "}}"):                                             http.StatusNoContent,
		nest(250, `{"map":{"`+name+`":`, `{"name":"bad"}`, "}}"):                                 http.StatusBadRequest,
		`{"map":{"` + strings.Repeat(name, 200) + `":` + fill(300_000, `{"list":[`, "1", "]}}}"): http.StatusBadRequest,
		`{"map":{"` + strings.Repeat(name, 200) + `":` + fill(3_000, `{"list":[`, "{}", "]}}}"):  http.StatusNoContent,
		fill(size/2, `{"list":[`, `{"name":"bad"}`, "]}"):                                        http.StatusBadRequest,
	} {
		t.Run(fmt.Sprintf("%.30s", body), func(t *testing.T) { cost("/checked", body, want) })
	}
}
