package seeds_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/bytedance/sonic"
	goccy "github.com/goccy/go-json"
	segmentio "github.com/segmentio/encoding/json"

	"github.com/dunlinhttp/dunlin/bench/peers/service"
	"github.com/dunlinhttp/dunlin/internal/jsonwire"
)

// signUp is the body of a typical request: six members.
type signUp struct {
	Name   string  `json:"name"`
	Mail   string  `json:"mail"`
	Age    int     `json:"age"`
	Score  float64 `json:"score"`
	Admin  bool    `json:"admin"`
	Invite *string `json:"invite"`
}

const signUpJSON = `{"name":"Ada Lovelace","mail":"ada@example.org","age":36,"score":99.5,"admin":true,"invite":null}`

// The ways to decode. Sonic and Dunlin have compiled the types before. Sonic's strings point into one copy of the whole text,
// Dunlin's into blocks of 4 KB; encoding/json allocates each string.
var decodeWays = []struct {
	name   string
	decode func(data []byte, v any) error
}{
	{"encoding-json", json.Unmarshal},
	{"goccy", goccy.Unmarshal},
	{"segmentio", func(data []byte, v any) error { return segmentio.Unmarshal(data, v) }},
	{"sonic", sonic.Unmarshal},
	{"sonic-std", sonic.ConfigStd.Unmarshal}, // with encoding/json's checks of strings
	{"dunlin", func(data []byte, v any) error {
		return jsonwire.DecoderFor(reflect.TypeOf(v).Elem()).Decode(data, v, jsonwire.Limits{})
	}},
}

// decodeTexts returns the decoded texts: 1,000 users, 108 KB, also indented; a small body; and a tree decoded into any.
func decodeTexts(tb testing.TB) []decodeText {
	tb.Helper()
	users, err := json.Marshal(service.Users())
	if err != nil {
		tb.Fatal(err)
	}
	indented, err := json.MarshalIndent(service.Users(), "", "  ")
	if err != nil {
		tb.Fatal(err)
	}
	return []decodeText{
		{"users", users, func() any { return new([]service.User) }},
		{"users-indented", indented, func() any { return new([]service.User) }},
		{"users-any", users, func() any { return new(any) }},
		{"sign-up", []byte(signUpJSON), func() any { return new(signUp) }},
	}
}

type decodeText struct {
	name string
	data []byte
	make func() any
}

func TestDecodeWays(t *testing.T) {
	for _, text := range decodeTexts(t) {
		want := text.make()
		if err := json.Unmarshal(text.data, want); err != nil {
			t.Fatal(err)
		}
		for _, way := range decodeWays {
			got := text.make()
			if err := way.decode(text.data, got); err != nil {
				t.Errorf("%s, %s: %v", text.name, way.name, err)
			} else if !reflect.DeepEqual(got, want) {
				t.Errorf("%s, %s: got another value than encoding/json", text.name, way.name)
			}
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, text := range decodeTexts(b) {
		for _, way := range decodeWays {
			b.Run(text.name+"/"+way.name, func(b *testing.B) {
				b.SetBytes(int64(len(text.data)))
				b.ReportAllocs()
				for b.Loop() {
					if err := way.decode(text.data, text.make()); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
