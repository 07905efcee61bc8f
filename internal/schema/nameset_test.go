package schema_test

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/schema"
)

// members returns an object with n members, and those of more after them.
func members(n int, more string) []byte {
	var b strings.Builder
	b.WriteByte('{')
	for i := range n {
		fmt.Fprintf(&b, `"%d":1,`, i)
	}
	return []byte(b.String() + more + "}")
}

// Duplicate members are found among any number of members, with and without escapes.
func TestDuplicateMembers(t *testing.T) {
	node, err := schema.Of(reflect.TypeFor[map[string]int]())
	if err != nil {
		t.Fatal(err)
	}
	for more, duplicates := range map[string]int{
		`"new":1`:                           0,
		`"0":1`:                             1,
		`"7":1,"new":1`:                     1,
		`"8":1,"9":1`:                       2,
		`"99":1`:                            1,
		`"\u0038":1,"\u0039\u0039":1`:       2,
		`"n\u0065w":1,"\u006eew":1,"new":1`: 2,
		`"new":1,"n\u0065w":1`:              1,
		`"99\":1":1,"9\u0039\":1":1`:        1,
		`"":1,"\u0078":1,"x":1,"":1`:        2,
		`"\u0038\":1,\"9":1,"9":1,"x\"":1,"x\\\"":1`: 1,
	} {
		for _, n := range []int{100, 1000} {
			var report schema.Report
			node.Check(members(n, more), "body", &report)
			if len(report.List) != duplicates {
				t.Errorf("%d members and %s: got %v", n, more, report.List)
			}
			for _, v := range report.List {
				if v.Rule != "duplicate" {
					t.Errorf("%d members and %s: got %v", n, more, v)
				}
			}
		}
	}
}

// Finding duplicates among many members takes less memory than four times the text.
func TestMemoryOfManyMembers(t *testing.T) {
	node, err := schema.Of(reflect.TypeFor[map[string]any]())
	if err != nil {
		t.Fatal(err)
	}
	text := members(40_000, `"last":1`)
	var before, after runtime.MemStats
	var report schema.Report
	runtime.ReadMemStats(&before)
	node.Check(text, "body", &report)
	runtime.ReadMemStats(&after)
	if !report.OK() {
		t.Fatal(report.List)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 4*uint64(len(text)) {
		t.Errorf("%d bytes are allocated for a text of %d bytes", n, len(text))
	}
}
