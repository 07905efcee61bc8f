package jsonwire_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/dunlinhttp/dunlin/internal/jsonwire"
)

// A fixedRoom is a Room of a fixed number of bytes.
type fixedRoom struct{ left, asked int }

func (p *fixedRoom) ReserveMemory(n int64) error {
	p.asked++
	if p.left -= int(n); p.left < 0 {
		return errors.New("no room")
	}
	return nil
}

// Texts whose values are many times larger than the text are refused if there is no room for the values.
func TestValuesAreReserved(t *testing.T) {
	if strconv.IntSize < 64 {
		t.Skip("the sizes apply to 64-bit systems")
	}
	type wide struct {
		Text [16]string
		List [16]float64
	}
	type small struct{ A int }
	repeat := func(unit string, n int) string {
		return "[" + strings.TrimSuffix(strings.Repeat(unit+",", n), ",") + "]"
	}
	for name, c := range map[string]struct {
		v     any
		text  string
		least int // minimum number of reserved bytes
	}{
		"objects in any":           {new(any), repeat(`{"a":1}`, 10_000), 2 << 20},
		"lists in any":             {new(any), repeat(`[[]]`, 10_000), 500_000},
		"followed by white space":  {new(any), repeat(`{"a":1}`, 30_000) + strings.Repeat(" ", 4<<20), 2 << 20},
		"strings in any":           {new(any), repeat(`""`, 20_000), 350_000},
		"wide structs":             {new([]wide), repeat(`{}`, 10_000), 3 << 20},
		"pointers to wide structs": {new([]*wide), repeat(`{}`, 10_000), 3 << 20},
		"maps":                     {new([]map[string]string), repeat(`{"a":"b"}`, 10_000), 2 << 20},
		"maps with numbers":        {new([]map[int]*small), repeat(`{"1":{}}`, 10_000), 1 << 20},
		"lists of lists":           {new([][]string), repeat(`[]`, 40_000), 400_000},
		"raw messages":             {new([]json.RawMessage), repeat(`1`, 40_000), 800_000},
		"times with offsets":       {new([]time.Time), repeat(`"2026-01-31T15:04:05+01:23"`, 10_000), 1 << 20},
		"map with any":             {new(map[string]any), `{"a":` + repeat(`{"a":1}`, 10_000) + "}", 2 << 20},
		"in an interface":          {new(struct{ V any }), `{"V":` + repeat(`{"a":1}`, 10_000) + "}", 2 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			d, data := jsonwire.DecoderFor(reflect.TypeOf(c.v).Elem()), []byte(c.text)
			enough := &fixedRoom{left: 1 << 30}
			if !d.Try(data, c.v, jsonwire.Limits{}, enough) {
				t.Fatal("refused, although there is room")
			}
			if used := 1<<30 - enough.left; used < c.least {
				t.Errorf("got %d reserved bytes for a text of %d bytes, want at least %d", used, len(data), c.least)
			}
			if enough.asked > 100 {
				t.Errorf("got %d reservations", enough.asked)
			}
			reflect.ValueOf(c.v).Elem().SetZero()
			if few := (&fixedRoom{left: c.least / 2}); d.Try(data, c.v, jsonwire.Limits{}, few) {
				t.Error("accepted, although there is no room")
			}
		})
	}
	none := new(fixedRoom)
	for text, v := range map[string]any{
		`{"a":[1,"two",{"b":null}]}`:                     new(any),
		repeat(`{"A":12}`, 5000):                         new([]small),
		repeat(`"`+strings.Repeat("text", 20)+`"`, 1000): new([]string),
	} {
		if !jsonwire.DecoderFor(reflect.TypeOf(v).Elem()).Try([]byte(text), v, jsonwire.Limits{}, none) || none.asked != 0 {
			t.Errorf("got a reservation for %.40s", text)
		}
	}
}

// A string with invalid UTF-8 becomes three times as long. Its memory is reserved before it is allocated, once and in its final size.
func TestReplacementsAreReservedBeforeAllocation(t *testing.T) {
	text := []byte(`"` + strings.Repeat("\xff", 3<<20) + `"`)
	const size = 9 << 20
	d := jsonwire.DecoderFor(reflect.TypeFor[string]())
	var s string
	for name, c := range map[string]struct {
		room *fixedRoom
		most uint64 // allocated bytes
	}{
		"room":    {&fixedRoom{left: 1 << 30}, size + size/8},
		"no room": {&fixedRoom{}, 64 << 10},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		accepted := d.Try(text, &s, jsonwire.Limits{}, c.room)
		runtime.ReadMemStats(&after)
		if accepted != (name == "room") {
			t.Errorf("%s: got accepted = %t", name, accepted)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > c.most {
			t.Errorf("%s: got %d allocated bytes, want at most %d", name, n, c.most)
		}
	}
	if len(s) != size {
		t.Errorf("got %d bytes, want %d", len(s), size)
	}
}

// A map of many members, some of them duplicates, equals that of encoding/json, and a map that the caller passes is the same
// map afterwards.
func TestLargeMaps(t *testing.T) {
	var texts strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&texts, `"%d":"%d",`, i%15_000, i)
	}
	for name, text := range map[string]string{
		"alone":                "{" + texts.String() + `"":""}`,
		"before a long string": "{" + texts.String()[:30_000] + `"":"` + strings.Repeat("x", 1<<20) + `"}`,
		"before invalid JSON":  "{" + texts.String() + `"":nul}`,
		"before commas":        "{" + texts.String()[:150] + strings.Repeat(",", 100_000),
	} {
		for _, c := range []struct{ v, want any }{
			{new(any), new(any)},
			{new(map[string]any), new(map[string]any)},
			{new(map[string]string), new(map[string]string)},
			{&map[string]any{"a": 1.0}, &map[string]any{"a": 1.0}},
			{&map[string]string{"a": "b"}, &map[string]string{"a": "b"}},
		} {
			had := reflect.ValueOf(c.v).Elem()
			var address unsafe.Pointer
			if had.Kind() == reflect.Map {
				address = had.UnsafePointer()
			}
			room := &fixedRoom{left: 1 << 30}
			took := jsonwire.DecoderFor(had.Type()).Try([]byte(text), c.v, jsonwire.Limits{}, room)
			if err := json.Unmarshal([]byte(text), c.want); took != (err == nil) {
				t.Fatalf("%s: %T: accepted: %v; error of encoding/json: %v", name, c.v, took, err)
			} else if took && !reflect.DeepEqual(c.v, c.want) {
				t.Errorf("%s: got %T differs from encoding/json", name, c.v)
			}
			if address != nil && address != had.UnsafePointer() {
				t.Errorf("%s: got %T was replaced", name, c.v)
			}
			if used, most := 1<<30-room.left, 4*33*2*20_000; used > most {
				t.Errorf("%s: %T: got %d reserved bytes, want at most %d", name, c.v, used, most)
			}
		}
	}
}
