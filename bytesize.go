package dunlin

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A ByteSize is an amount of memory in bytes. As text it is a whole number and a
// unit: B, KiB, MiB, GiB or TiB (powers of 1024), kB, MB, GB or TB (powers of 1000),
// or none for bytes. It can be a flag (flag.TextVar).
type ByteSize int64

// byteUnits has larger units first, so that String finds the largest that fits.
var byteUnits = []struct {
	name string
	size ByteSize
}{
	{"TiB", 1 << 40}, {"TB", 1e12}, {"GiB", 1 << 30}, {"GB", 1e9},
	{"MiB", 1 << 20}, {"MB", 1e6}, {"KiB", 1 << 10}, {"kB", 1e3}, {"B", 1},
}

// String returns the size in the largest unit in which it is a whole number.
func (s ByteSize) String() string {
	for _, u := range byteUnits {
		if s != 0 && s%u.size == 0 {
			return strconv.FormatInt(int64(s/u.size), 10) + u.name
		}
	}
	return "0"
}

// MarshalText returns String.
func (s ByteSize) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a size such as 16MiB, 500 MB or 65536.
func (s *ByteSize) UnmarshalText(text []byte) error {
	digits := len(text) - len(strings.TrimLeft(string(text), "0123456789"))
	name := strings.TrimSpace(string(text[digits:]))
	n, err := strconv.ParseInt(string(text[:digits]), 10, 64)
	switch {
	case digits == 0:
		return fmt.Errorf("dunlin: size %q does not begin with a whole number: write it like 16MiB", text)
	case err != nil:
		return fmt.Errorf("dunlin: size %q is too large", text)
	case name == "":
		*s = ByteSize(n)
		return nil
	}
	for _, u := range byteUnits {
		if u.name != name {
			continue
		}
		if n > math.MaxInt64/int64(u.size) {
			return fmt.Errorf("dunlin: size %q is too large", text)
		}
		*s = ByteSize(n) * u.size
		return nil
	}
	return fmt.Errorf("dunlin: size %q has unit %q: known are B, KiB, MiB, GiB, TiB, kB, MB, GB and TB", text, name)
}
