package jsonwire_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/dunlinhttp/dunlin/internal/jsonwire"
)

// quoteSlowly is the reference implementation of AppendString: one character at a time.
func quoteSlowly(s string, o jsonwire.Options) string {
	var b strings.Builder
	b.WriteByte('"')
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			b.WriteString(`\ufffd`)
		case r == '"' || r == '\\':
			b.WriteString(`\` + s[:size])
		case strings.ContainsRune("\b\f\n\r\t", r):
			b.WriteString(map[rune]string{'\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`}[r])
		case r < ' ', r == '\u2028', r == '\u2029', !o.NoEscapeHTML && strings.ContainsRune("<>&", r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(s[:size])
		}
		s = s[size:]
	}
	return b.String() + `"`
}

func FuzzString(f *testing.F) {
	f.Add("plain", uint8(0))
	f.Add("<html> & \"quotes\" \\ \x00\x1f\x7f\b\f\n\r\t", uint8(3))
	f.Add("é日本語😀\u2028\u2029\ufffd", uint8(7))
	f.Add("12345678\xff\xc3(\xe2\x80\xa8", uint8(15))
	f.Fuzz(func(t *testing.T, s string, room uint8) {
		for _, m := range modes {
			want := before + quoteSlowly(s, m.opts)
			dst := append(make([]byte, 0, len(before)+int(room)), before...)
			if got := jsonwire.AppendString(dst, s, m.opts); string(got) != want {
				t.Fatalf("%s: %q: got %s, want %s", m.name, s, got, want)
			}
			one(t, "string", s)
		}
	})
}

func FuzzNumbers(f *testing.F) {
	for _, bits := range []uint64{0, 1, 1 << 63, math.Float64bits(1e21), math.Float64bits(-1.5e-7),
		math.Float64bits(math.NaN()), 0x7f800000, 0x33d6bf95, 99, 100, 9999, 10000, math.MaxUint64} {
		f.Add(bits)
	}
	f.Fuzz(func(t *testing.T, bits uint64) {
		one(t, "float64", math.Float64frombits(bits))
		one(t, "float32", math.Float32frombits(uint32(bits)))
		one(t, "float32 of high bits", math.Float32frombits(uint32(bits>>32)))
		one(t, "whole float", float64(int64(bits>>(bits%64))))
		one(t, "whole float32", float32(int32(bits>>(bits%64))))
		one(t, "integers", struct {
			A int64
			B uint64
			C int32
			D uint16
			E int8
			F uint64 `json:",string"`
		}{int64(bits), bits, int32(bits), uint16(bits), int8(bits), bits >> (bits % 64)})
	})
}

// FuzzAny compares the encodings of the values that json.Unmarshal returns for arbitrary JSON.
func FuzzAny(f *testing.F) {
	for _, s := range []string{`null`, `{"a":[1,2.5e-9,"x<",true,null,{}],"b":{"c":{"d":[]}}}`, `[[[[]]]]`, `"\ud800"`,
		`{"\u2028":1,"":2,"~/":3}`, `[1e400]`, `[-0, 1e21, 123456789012345678901234567890]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var v any
		if json.Unmarshal(data, &v) == nil {
			one(t, "any", v)
			one(t, "in a map", map[string]any{"v": v, "p": &v})
		}
		one(t, "raw", json.RawMessage(data))
		one(t, "raw in a struct", struct {
			R json.RawMessage  `json:",omitempty"`
			P *json.RawMessage `json:"p"`
		}{data, (*json.RawMessage)(&data)})
		one(t, "number", json.Number(data))
	})
}

// shapes has one field of each kind, which is filled from fuzz input.
type shapes struct {
	Bool    bool              `json:"b,omitempty"`
	Int     int               `json:",string,omitempty"`
	I8      int8              `json:"i8,omitzero"`
	U32     *uint32           `json:"<u32>,omitempty"`
	F64     float64           `json:",omitzero"`
	F32     *float32          `json:",string"`
	S       string            `json:"s,omitempty"`
	Q       string            `json:"q,string"`
	Bytes   []byte            `json:",omitempty"`
	Strings []string          `json:"strings,omitzero"`
	Ints    map[int32]string  `json:",omitempty"`
	Map     map[string]shapes `json:"map,omitempty"`
	Text    map[intText]valueText
	Next    *shapes     `json:",omitempty"`
	List    []*shapes   `json:",omitzero"`
	Any     any         `json:"any"`
	Time    time.Time   `json:",omitzero"`
	Array   [2]inner    `json:"array"`
	JSON    valueJSON   `json:",omitzero"`
	PJSON   pointerJSON `json:"pjson"`
	Zero    zeroPointer `json:",omitzero"`
	Number  json.Number
	*Inner
	deep
}

// source returns fuzz input piece by piece, and zeros after its end.
type source struct {
	data  []byte
	depth int
}

func (s *source) byte() byte {
	if len(s.data) == 0 {
		return 0
	}
	b := s.data[0]
	s.data = s.data[1:]
	return b
}

func (s *source) word() uint64 {
	var b [8]byte
	n := copy(b[:min(int(s.byte()%9), 8)], s.data)
	s.data = s.data[n:]
	return binary.LittleEndian.Uint64(b[:])
}

func (s *source) string() string {
	n := min(int(s.byte()%24), len(s.data))
	v := string(s.data[:n])
	s.data = s.data[n:]
	return v
}

func (s *source) shapes() (v shapes) {
	if s.depth++; s.depth > 8 {
		return v
	}
	defer func() { s.depth-- }()
	for range s.byte() % 24 {
		s.fill(&v, s.byte()%24)
	}
	return v
}

func (s *source) fill(v *shapes, which byte) {
	switch which {
	case 0:
		v.Bool = true
	case 1:
		v.Int = int(s.word())
	case 2:
		v.I8 = int8(s.byte())
	case 3:
		v.U32 = ptr(uint32(s.word()))
	case 4:
		v.F64 = math.Float64frombits(s.word())
	case 5:
		v.F32 = ptr(math.Float32frombits(uint32(s.word())))
	case 6:
		v.S, v.Q = s.string(), s.string()
	case 7:
		v.Bytes = []byte(s.string())
	case 8:
		v.Strings = append(v.Strings, s.string())
	case 9:
		v.Ints = map[int32]string{int32(s.word()): s.string(), int32(s.byte()): ""}
	case 10:
		v.Map = map[string]shapes{s.string(): s.shapes(), s.string(): s.shapes()}
	case 11:
		v.Text = map[intText]valueText{intText(s.byte() % 9): {s.string()}, 3: {}}
	case 12:
		v.Next = ptr(s.shapes())
	case 13:
		v.List = append(v.List, nil, ptr(s.shapes()))
	case 14:
		v.Any = []any{s.string(), float64(s.byte()), s.shapes(), &v.Strings}
	case 15:
		v.Time = time.Unix(int64(s.word()>>20), int64(s.byte())).In(time.FixedZone("", int(int32(s.word()))>>12))
	case 16:
		v.Array[s.byte()%2].A = int(s.byte())
	case 17:
		v.JSON.S = s.string()
	case 18:
		v.PJSON.S = s.string()
	case 19:
		v.Zero.N = int(s.byte())
	case 20:
		v.Number = json.Number(s.string())
	case 21:
		v.Inner = &Inner{A: int(s.byte()), C: 1}
	case 22:
		v.deep.Inner.A = int(s.byte())
	case 23:
		v.Strings, v.List, v.Map = []string{}, []*shapes{}, map[string]shapes{}
	}
}

func FuzzShapes(f *testing.F) {
	every := []byte{23}
	for which := range byte(24) {
		every = append(every, which, 5, 'h', '<', 0xff, '"', 1, 2, 3)
	}
	f.Add([]byte{})
	f.Add(every)
	f.Fuzz(func(t *testing.T, data []byte) {
		v := (&source{data: data}).shapes()
		one(t, "shapes", v)
		one(t, "by pointer", &v)
		one(t, "in a slice", []shapes{v})
	})
}
