package schema_test

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/schema"
)

// A leaving is a request whose client disconnects after some checks of its context.
type leaving struct {
	looks int
	ctx   context.Context
	leave context.CancelFunc
}

func (l *leaving) Context() context.Context {
	if l.looks--; l.looks == 0 {
		l.leave()
	}
	return l.ctx
}

// A check ends when its request ends.
func TestCheckEndsWithItsRequest(t *testing.T) {
	node, err := schema.Of(reflect.TypeFor[[]any]())
	if err != nil {
		t.Fatal(err)
	}
	r := &leaving{looks: 3}
	r.ctx, r.leave = context.WithCancel(t.Context())
	report := schema.Report{Request: r}
	node.Check([]byte("["+strings.Repeat("1,", 5000)+`"\ud800"]`), "body", &report)
	if !report.Ended || !report.OK() || r.looks != 0 {
		t.Errorf("got ended %v, %d violations, %d checks of the context left", report.Ended, len(report.List), r.looks)
	}
}

// The size of a report is limited, and a check ends when the report is full.
func TestReportIsFull(t *testing.T) {
	node, err := schema.Of(reflect.TypeFor[map[string][]string]())
	if err != nil {
		t.Fatal(err)
	}
	for body, most := range map[string]int{
		"{" + `"` + strings.Repeat("x", 99) + `":[` + strings.Repeat("1,", 500) + "1]}":            100,
		`{"a":[` + strings.Repeat("1,", 500) + `1],"b":` + strings.Repeat("not JSON any more ", 9): 100,
	} {
		var report schema.Report
		node.Check([]byte(body), "body", &report)
		if n := len(report.List); n > most || n < most/2 || !report.More {
			t.Errorf("%.20s: got %d violations, more: %v", body, n, report.More)
		}
	}
	var report schema.Report
	node.Check([]byte(`{"a":[`+strings.Repeat("1,", 99)+"1]}"), "body", &report)
	if len(report.List) != 100 || report.More {
		t.Errorf("got %d violations, more: %v", len(report.List), report.More)
	}
}

func TestPointersAreShort(t *testing.T) {
	node, err := schema.Of(reflect.TypeFor[struct{}]())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"ab":                                     "#/ab",
		`a\u0062\/`:                              "#/ab~1",
		strings.Repeat("a", 100):                 "#/" + strings.Repeat("a", 100),
		strings.Repeat("a", 101):                 "#/" + strings.Repeat("a", 100) + "%E2%80%A6",
		strings.Repeat("a", 99) + `\n\n`:         "#/" + strings.Repeat("a", 99) + "%0A%E2%80%A6",
		strings.Repeat("a", 99) + `\ud83d\ude00`: "#/" + strings.Repeat("a", 99) + "%F0%9F%98%80",
		strings.Repeat("a", 99) + "éé":           "#/" + strings.Repeat("a", 99) + "%C3%A9%E2%80%A6",
	} {
		var report schema.Report
		node.Check([]byte(`{"`+name+`":1}`), "body", &report)
		if len(report.List) != 1 || report.List[0].Pointer != want {
			t.Errorf("%s: got %+v, want %s", name, report.List, want)
		}
	}
	var report schema.Report
	node.Check([]byte(`{"x":`+strings.Repeat(`{"`+strings.Repeat("y", 80)+`":`, 900)+`"\ud800"`+strings.Repeat("}", 901)), "body", &report)
	for _, v := range report.List {
		if len(v.Pointer) > 1<<10 {
			t.Errorf("got a pointer of %d bytes", len(v.Pointer))
		}
	}
}

// Elements with different spellings of the same value are equal, also in nested arrays.
func TestRepeatedElements(t *testing.T) {
	type set struct {
		Kids []set `json:"kids,omitempty" uniqueItems:"true"`
		Any  any   `json:"any,omitempty"`
	}
	node, err := schema.Of(reflect.TypeFor[set]())
	if err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]string{
		`{"kids":[{"any":1},{"any":1.0}]}`:                                                                         "#/kids 1",
		`{"kids":[{"any":{"a":1,"b":[2]}},{},{"any":{"b":[20e-1],"\u0061":1}}]}`:                                   "#/kids 2",
		`{"kids":[{"any":"1"},{"any":1},{"any":[1]},{"any":{}},{"any":[]},{"any":null},{"any":""},{"any":false}]}`: "",
		`{"kids":[{"kids":[{},{"any":1}]},{"kids":[{"any":1},{}]}]}`:                                               "",
		`{"kids":[{"kids":[{},{"any":1}]},{"kids":[{},{"any":1}]}]}`:                                               "#/kids 1",
		`{"kids":[{"kids":[{},{}]},{"kids":[{},{}]}]}`:                                                             "#/kids/0/kids 1, #/kids/1/kids 1, #/kids 1",
		`{"kids":[{"any":["a","b"]},{"any":["ab"]},{"any":["a,b"]},{"any":[["a"],"b"]}]}`:                          "",
	} {
		var report schema.Report
		node.Check([]byte(body), "body", &report)
		var got []string
		for _, v := range report.List {
			got = append(got, v.Pointer+" "+v.Limit)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: got %v, want %s", body, got, want)
		}
	}
}

func TestMultiples(t *testing.T) {
	type of struct {
		N json.Number `json:"n" multipleOf:"0.5"`
		M json.Number `json:"m" multipleOf:"7"`
		L json.Number `json:"l" multipleOf:"1234567890123456789012"`
	}
	node, err := schema.Of(reflect.TypeFor[of]())
	if err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]bool{
		`{"n":1.5,"m":-21,"l":0}`: true, `{"n":1.25,"m":0,"l":0}`: false, `{"n":1e1000000,"m":0,"l":0}`: true, `{"n":1e-9,"m":0,"l":0}`: false,
		`{"n":0,"m":7e999,"l":0}`: true, `{"n":0,"m":1e999,"l":0}`: false, `{"n":0,"m":70.0,"l":0}`: true, `{"n":0,"m":0.7,"l":0}`: false,
		`{"n":0,"m":123456789012345678901234567893,"l":0}`: false, `{"n":0,"m":864197523086419752308641975251,"l":0}`: true,
		`{"n":0,"m":0,"l":2469135780246913578024}`: true, `{"n":0,"m":0,"l":2469135780246913578025}`: false, `{"n":0,"m":0,"l":1234567890123456789012e5}`: true,
	} {
		var report schema.Report
		if node.Check([]byte(body), "body", &report); report.OK() != want {
			t.Errorf("%s: got %+v", body, report.List)
		}
	}
}
