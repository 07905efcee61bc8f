//lint:file-ignore SA5008 the test needs unusual tags

package jsonwire_test

import (
	"encoding"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// Types with methods, one for each rule.
type (
	valueJSON     struct{ S string }
	pointerJSON   struct{ S string }
	valueText     struct{ S string }
	pointerText   struct{ S string }
	bothValue     struct{ S string } // MarshalJSON takes precedence
	mixed         struct{ S string } // JSON by pointer, text by value
	stringJSON    string
	stringText    string
	intText       int
	byteText      byte
	sliceJSON     []int
	mapJSON       map[string]int
	funcJSON      func() string
	nilJSON       struct{} // the method of the pointer accepts nil
	failing       struct{}
	failingText   struct{}
	invalid       string // returns itself as JSON
	zeroValue     struct{ N int }
	zeroPointer   struct{ N int }
	structKey     struct{ A, B int }
	pointerKey    struct{ A int }
	directJSON    struct{ P *int }
	directArray   [1]*int
	embedsTime    struct{ time.Time }
	embedsMarshal struct {
		valueJSON
		Other int
	}
	stringer interface{ String() string }
	named    struct{ N string }
)

func (v valueJSON) MarshalJSON() ([]byte, error) {
	return []byte(` { "v<": ` + quote(v.S) + ` } `), nil
}

func (v *pointerJSON) MarshalJSON() ([]byte, error) { return []byte(`["p&", ` + quote(v.S) + `]`), nil }

func (v valueText) MarshalText() ([]byte, error)    { return []byte("vt<" + v.S), nil }
func (v *pointerText) MarshalText() ([]byte, error) { return []byte("pt>" + v.S), nil }
func (v bothValue) MarshalJSON() ([]byte, error)    { return []byte(`"json"`), nil }
func (v bothValue) MarshalText() ([]byte, error)    { return []byte(`text`), nil }
func (v *mixed) MarshalJSON() ([]byte, error)       { return []byte(`"json"`), nil }
func (v mixed) MarshalText() ([]byte, error)        { return []byte(`text`), nil }
func (v stringJSON) MarshalJSON() ([]byte, error)   { return []byte(quote(string(v) + "!")), nil }
func (v stringText) MarshalText() ([]byte, error)   { return []byte(v + "!"), nil }
func (v intText) MarshalText() ([]byte, error)      { return []byte(strings.Repeat("i", int(v))), nil }
func (v byteText) MarshalText() ([]byte, error)     { return []byte{'0' + byte(v)}, nil }
func (v sliceJSON) MarshalJSON() ([]byte, error)    { return []byte(`"slice"`), nil }
func (v mapJSON) MarshalJSON() ([]byte, error)      { return []byte(`"map"`), nil }
func (v funcJSON) MarshalJSON() ([]byte, error)     { return []byte(quote(v())), nil }
func (v failing) MarshalJSON() ([]byte, error)      { return nil, errFailing }
func (v failingText) MarshalText() ([]byte, error)  { return nil, errFailing }
func (v invalid) MarshalJSON() ([]byte, error)      { return []byte(v), nil }
func (v zeroValue) IsZero() bool                    { return v.N == 42 }
func (v *zeroPointer) IsZero() bool                 { return v.N == 42 }
func (v structKey) MarshalText() ([]byte, error)    { return []byte{'k', '0' + byte(v.B)}, nil }
func (v *pointerKey) MarshalText() ([]byte, error)  { return []byte{'p', '0' + byte(v.A)}, nil }
func (v directArray) MarshalText() ([]byte, error)  { return []byte{'a', '0' + byte(*v[0])}, nil }
func (v named) String() string                      { return v.N }

func (v *nilJSON) MarshalJSON() ([]byte, error) {
	if v == nil {
		return []byte(`"nil"`), nil
	}
	return []byte(`"not nil"`), nil
}

func (v directJSON) MarshalJSON() ([]byte, error) {
	if v.P == nil {
		return []byte(`"none"`), nil
	}
	return json.Marshal(*v.P)
}

var errFailing = errors.New("this one always fails")

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// Structs, one for each rule of visibility.
type (
	inner  struct{ A, B, private int }
	Inner  struct{ A, C int }
	deep   struct{ Inner }
	tagged struct {
		X int `json:"A"`
	}
	Dup1   struct{ D int }
	Dup2   struct{ D int }
	Named1 struct {
		N int `json:"n"`
	}
	Named2 struct {
		M int `json:"n"`
	}
	OnlyTag struct {
		Z int `json:"D"`
	}
	text string
	Text string

	embedding struct {
		inner
		*deep
		B string
	}
	twins struct {
		Dup1
		Dup2
	}
	broken struct {
		Dup1
		Dup2
		OnlyTag
	}
	diamond struct {
		Left
		*Right
	}
	Left  struct{ Base }
	Right struct{ Base }
	Base  struct {
		Deepest
		V int
	}
	Deepest   struct{ W int }
	nonStruct struct {
		text
		Text
		*Inner `json:"renamed"`
		error
		stringer
		Err error
	}
	loop struct {
		*loop
		Value int
	}
	tags struct {
		A int    `json:"-"`
		B int    `json:"-,"`
		D int    `json:"with space"`
		E int    `json:"<&>"`
		F int    `json:"ünïcödé"`
		I int    `json:"!#$%&()*+-./:;<=>?@[]^_{|}~ "`
		J int    `json:"omitempty"`
		K int    `json:",unknown,omitempty"`
		L int    `xml:"l"`
		M int    `json:"a_very_long_name_indeed_longer_than_two_blocks"`
		N int    `json:"exactly12byt"`
		O string `json:"exactly12byt_"`
		P string `json:"exactly11by"`
	}
)

// Recursive types.
type (
	tree struct {
		Value    int
		Children []*tree
		ByName   map[string]tree
	}
	list    struct{ Next *list }
	chain   []chain
	ringMap map[string]ringMap
	pingA   struct{ B *pingB }
	pingB   struct{ A []pingA }
	endless *endless
)

var (
	_ json.Marshaler         = valueJSON{}
	_ encoding.TextMarshaler = structKey{}
)
