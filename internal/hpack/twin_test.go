package hpack_test

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dunlinhttp/dunlin/internal/hpack"
)

// A reference implementation of Decoder for the fuzz targets: a direct implementation of RFC 7541, with strings, slices and one
// bit at a time.

type pair struct{ name, value string }

func (p pair) size() int { return len(p.name) + len(p.value) + 32 }

var (
	errPlain     = errors.New("refused")
	errTruncated = errors.New("cut off")
)

// plainDecoder holds the dynamic table with the newest entry first.
type plainDecoder struct {
	table   []pair
	max     int
	allowed int
	reduced bool
}

func newPlainDecoder() *plainDecoder { return &plainDecoder{max: 4096, allowed: 4096} }

func (d *plainDecoder) setAllowed(n int) {
	d.allowed = n
	d.reduced = n < d.max
}

func (d *plainDecoder) evict() {
	for total := d.size(); total > d.max; total = d.size() {
		d.table = d.table[:len(d.table)-1]
	}
}

func (d *plainDecoder) size() (n int) {
	for _, p := range d.table {
		n += p.size()
	}
	return n
}

var staticTable = func() (all []pair) {
	for _, e := range hpack.StaticTable() {
		all = append(all, pair{e[0], e[1]})
	}
	return all
}()

func (d *plainDecoder) at(i int) (pair, error) {
	switch {
	case i == 0:
		return pair{}, errPlain
	case i < len(staticTable):
		return staticTable[i], nil
	case i-len(staticTable) < len(d.table):
		return d.table[i-len(staticTable)], nil
	}
	return pair{}, errPlain
}

// decode returns the fields, each as a line.
func (d *plainDecoder) decode(block string) (fields []string, err error) {
	updates := 0
	for block != "" && block[0]>>5 == 1 {
		n, rest, err := plainInt(block, 5)
		if err != nil {
			return nil, err
		}
		if updates++; updates > 2 || n > d.allowed {
			return nil, errPlain
		}
		d.max, d.reduced, block = n, false, rest
		d.evict()
	}
	if d.reduced {
		return nil, errPlain
	}
	for block != "" {
		var p pair
		var keep, never bool
		switch b := block[0]; {
		case b>>7 == 1:
			var i int
			if i, block, err = plainInt(block, 7); err == nil {
				p, err = d.at(i)
			}
		case b>>6 == 1:
			keep = true
			p, block, err = d.literal(block, 6)
		case b>>5 == 1:
			err = errPlain
		default:
			never = b>>4 == 1
			p, block, err = d.literal(block, 4)
		}
		if err != nil {
			return nil, err
		}
		if keep {
			d.table = append([]pair{p}, d.table...)
			if p.size() > d.max {
				d.table = nil
			}
			d.evict()
		}
		fields = append(fields, line(p.name, p.value, never))
	}
	return fields, nil
}

func line(name, value string, never bool) string {
	return fmt.Sprintf("%q: %q %v", name, value, never)
}

func (d *plainDecoder) literal(block string, prefix int) (p pair, rest string, err error) {
	i, rest, err := plainInt(block, prefix)
	if err != nil {
		return p, "", err
	}
	if i > 0 {
		p, err = d.at(i)
	} else {
		p.name, rest, err = plainString(rest)
	}
	if err != nil {
		return p, "", err
	}
	p.value, rest, err = plainString(rest)
	return p, rest, err
}

func plainInt(s string, prefix int) (n int, rest string, err error) {
	if s == "" {
		return 0, "", errTruncated
	}
	most := 1<<prefix - 1
	n, rest = int(s[0])&most, s[1:]
	if n < most {
		return n, rest, nil
	}
	sum := int64(n)
	for i := 0; i < 8; i++ {
		if rest == "" {
			return 0, "", errTruncated
		}
		c := rest[0]
		rest = rest[1:]
		sum += int64(c%128) << (7 * i)
		if c < 128 {
			if sum >= 1<<30 {
				return 0, "", errPlain
			}
			return int(sum), rest, nil
		}
	}
	return 0, "", errPlain
}

func plainString(s string) (value, rest string, err error) {
	n, rest, err := plainInt(s, 7)
	if err != nil {
		return "", "", err
	}
	if n > len(rest) {
		return "", "", errTruncated
	}
	value, rest = rest[:n], rest[n:]
	if s[0] >= 0x80 {
		value, err = plainHuffman(value)
	}
	return value, rest, err
}

// plainCodes maps the Huffman codes, as strings of 0 and 1, to their symbols.
var plainCodes = func() map[string]int {
	m := map[string]int{}
	for s, code := range hpack.HuffmanCodes() {
		m[code] = s
	}
	return m
}()

func plainHuffman(s string) (string, error) {
	var bits strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&bits, "%08b", s[i])
	}
	var out []byte
	from := 0
	all := bits.String()
	for to := range len(all) + 1 {
		symbol, ok := plainCodes[all[from:to]]
		if !ok {
			continue
		}
		if symbol == 256 {
			return "", errPlain
		}
		out = append(out, byte(symbol))
		from = to
	}
	if rest := all[from:]; len(rest) > 7 || strings.Contains(rest, "0") {
		return "", errPlain
	}
	return string(out), nil
}
