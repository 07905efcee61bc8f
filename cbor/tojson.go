package cbor

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// ToJSON appends the JSON of a CBOR data item to dst, for typed.Config.Transcode. The names of members
// must be text. Byte strings become base64. ToJSON returns an error for tags, repeated names, simple
// values other than false, true, null and undefined, and items that are nested more than 32 levels deep.
//
// It does not decode the item to Go values. It needs memory for the JSON, which is at most eight times as
// long as the item, and for the names of the members of an object.
func ToJSON(dst, body []byte) ([]byte, error) {
	r := reader{in: body, out: dst}
	err := r.item(maxDepth)
	if err == nil && len(r.in) > 0 {
		err = errors.New("bytes after the data item")
	}
	if err != nil {
		return dst, fmt.Errorf("decode CBOR at offset %d: %w", len(body)-len(r.in), err)
	}
	return r.out, nil
}

const maxDepth = 32

// Major types (RFC 8949 section 3.1).
const (
	majorUint = iota
	majorNegative
	majorBytes
	majorText
	majorArray
	majorMap
	majorTag
	majorSimple
)

// Additional information of a head (RFC 8949 section 3).
const (
	infoOneByte    = 24 // the smallest of the four sizes of an argument
	infoEightBytes = 27
	infoIndefinite = 31
)

var (
	errShort  = errors.New("the data item is incomplete")
	errLength = errors.New("invalid length")
)

// A reader removes data items from the start of in and appends their JSON to out.
type reader struct{ in, out []byte }

// A head is the start of a data item: its major type and argument. The head of a float has its size in info.
type head struct {
	major, info byte
	n           uint64 // 0 for an indefinite length
}

func (h head) indefinite() bool { return h.info == infoIndefinite }

func (r *reader) head() (h head, err error) {
	if len(r.in) == 0 {
		return h, errShort
	}
	h.major, h.info = r.in[0]>>5, r.in[0]&31
	rest := r.in[1:]
	switch {
	case h.info < infoOneByte:
		h.n = uint64(h.info)
	case h.info <= infoEightBytes:
		size := 1 << (h.info - infoOneByte)
		if len(rest) < size {
			return h, errShort
		}
		var b [8]byte
		copy(b[8-size:], rest)
		h.n, rest = binary.BigEndian.Uint64(b[:]), rest[size:]
	case h.info != infoIndefinite || h.major < majorBytes || h.major == majorTag:
		return h, errLength
	}
	r.in = rest
	return h, nil
}

// ends reports whether a container ends after count items. It removes the end mark of a container with an indefinite length.
func (r *reader) ends(h head, count uint64) bool {
	if !h.indefinite() {
		return count == h.n
	}
	if len(r.in) == 0 || r.in[0] != majorSimple<<5|infoIndefinite {
		return false
	}
	r.in = r.in[1:]
	return true
}

// item reads a data item, in which other items may be nested up to depth levels deep.
func (r *reader) item(depth int) error {
	h, err := r.head()
	if err != nil {
		return err
	}
	switch h.major {
	case majorUint:
		r.out = strconv.AppendUint(r.out, h.n, 10)
	case majorNegative:
		r.negative(h.n)
	case majorBytes:
		b, err := r.string(h)
		r.out = append(base64.StdEncoding.AppendEncode(append(r.out, '"'), b), '"')
		return err
	case majorText:
		text, err := r.string(h)
		r.text(text)
		return err
	case majorArray:
		return r.array(h, depth-1)
	case majorMap:
		return r.object(h, depth-1)
	case majorTag:
		return errors.New("tags are not supported")
	case majorSimple:
		return r.simple(h)
	}
	return nil
}

// negative appends -1-n.
func (r *reader) negative(n uint64) {
	if n == math.MaxUint64 {
		r.out = append(r.out, "-18446744073709551616"...)
		return
	}
	r.out = strconv.AppendUint(append(r.out, '-'), n+1, 10)
}

// string reads the content of a byte or text string.
func (r *reader) string(h head) ([]byte, error) {
	if !h.indefinite() {
		if h.n > uint64(len(r.in)) {
			return nil, errShort
		}
		content := r.in[:h.n]
		if h.major == majorText && !utf8.Valid(content) {
			return nil, errors.New("invalid UTF-8")
		}
		r.in = r.in[h.n:]
		return content, nil
	}
	var content []byte
	for !r.ends(h, 0) {
		chunk, err := r.head()
		if err != nil {
			return nil, err
		}
		if chunk.major != h.major || chunk.indefinite() {
			return nil, errors.New("invalid chunk of a string")
		}
		part, err := r.string(chunk)
		if err != nil {
			return nil, err
		}
		content = append(content, part...)
	}
	return content, nil
}

// text appends a JSON string.
func (r *reader) text(s []byte) {
	r.out = append(r.out, '"')
	start := 0
	for i, c := range s {
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		r.out = append(r.out, s[start:i]...)
		start = i + 1
		if c < ' ' {
			const hex = "0123456789abcdef"
			r.out = append(r.out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		} else {
			r.out = append(r.out, '\\', c)
		}
	}
	r.out = append(append(r.out, s[start:]...), '"')
}

func (r *reader) array(h head, depth int) error {
	if depth < 0 {
		return errDepth
	}
	r.out = append(r.out, '[')
	for count := uint64(0); !r.ends(h, count); count++ {
		if count > 0 {
			r.out = append(r.out, ',')
		}
		if err := r.item(depth); err != nil {
			return err
		}
	}
	r.out = append(r.out, ']')
	return nil
}

var errDepth = fmt.Errorf("data items are nested more than %d levels deep", maxDepth)

func (r *reader) object(h head, depth int) error {
	if depth < 0 {
		return errDepth
	}
	r.out = append(r.out, '{')
	var names map[string]struct{}
	for count := uint64(0); !r.ends(h, count); count++ {
		if count > 0 {
			r.out = append(r.out, ',')
		}
		key, err := r.head()
		if err != nil {
			return err
		}
		if key.major != majorText {
			return errors.New("the name of a member is not text")
		}
		name, err := r.string(key)
		if err != nil {
			return err
		}
		if names == nil {
			names = map[string]struct{}{}
		}
		if names[string(name)] = struct{}{}; uint64(len(names)) == count {
			return fmt.Errorf("repeated name %.100q", name)
		}
		r.text(name)
		r.out = append(r.out, ':')
		if err := r.item(depth); err != nil {
			return err
		}
	}
	r.out = append(r.out, '}')
	return nil
}

// simple appends a simple value or a floating-point number (RFC 8949 section 3.3).
func (r *reader) simple(h head) error {
	switch h.info {
	case 20:
		r.out = append(r.out, "false"...)
	case 21:
		r.out = append(r.out, "true"...)
	case 22, 23: // undefined is null
		r.out = append(r.out, "null"...)
	case 25:
		return r.float(half(uint16(h.n)))
	case 26:
		return r.float(float64(math.Float32frombits(uint32(h.n))))
	case 27:
		return r.float(math.Float64frombits(h.n))
	default:
		return errors.New("unsupported simple value")
	}
	return nil
}

// half returns the value of a floating-point number of 16 bits (RFC 8949 appendix D).
func half(b uint16) float64 {
	exponent, fraction := int(b>>10&31), float64(b&1023)
	var v float64
	switch {
	case exponent == 0:
		v = math.Ldexp(fraction, -24)
	case exponent < 31:
		v = math.Ldexp(fraction+1024, exponent-25)
	case fraction == 0:
		v = math.Inf(1)
	default:
		v = math.NaN()
	}
	if b>>15 != 0 {
		v = -v
	}
	return v
}

// float appends a number as encoding/json does.
func (r *reader) float(v float64) error {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return errors.New("JSON has no NaN or infinity")
	}
	format := byte('f')
	if size := math.Abs(v); size != 0 && (size < 1e-6 || size >= 1e21) {
		format = 'e'
	}
	r.out = strconv.AppendFloat(r.out, v, format, -1, 64)
	return nil
}
