// Package bytesize converts amounts of memory to and from text such as 16MiB.
package bytesize

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// units is sorted from the largest to the smallest, so that Text finds the largest unit first.
var units = []struct {
	name string
	size int64
}{
	{"TiB", 1 << 40}, {"TB", 1e12}, {"GiB", 1 << 30}, {"GB", 1e9},
	{"MiB", 1 << 20}, {"MB", 1e6}, {"KiB", 1 << 10}, {"kB", 1e3}, {"B", 1},
}

// Text returns n bytes as text, in the largest unit in which n is a whole number.
func Text(n int64) string {
	for _, u := range units {
		if n != 0 && n%u.size == 0 {
			return strconv.FormatInt(n/u.size, 10) + u.name
		}
	}
	return "0"
}

// Parse parses a text such as 16MiB, 500 MB or 65536, and stores the number of bytes in *to.
func Parse(to *int64, text []byte) error {
	digits := len(text) - len(strings.TrimLeft(string(text), "0123456789"))
	name := strings.TrimSpace(string(text[digits:]))
	n, err := strconv.ParseInt(string(text[:digits]), 10, 64)
	switch {
	case digits == 0:
		return fmt.Errorf("dunlin: size %q does not begin with a whole number: write it like 16MiB", text)
	case err != nil:
		return fmt.Errorf("dunlin: size %q is too large", text)
	case name == "":
		*to = n
		return nil
	}
	for _, u := range units {
		if u.name != name {
			continue
		}
		if n > math.MaxInt64/u.size {
			return fmt.Errorf("dunlin: size %q is too large", text)
		}
		*to = n * u.size
		return nil
	}
	return fmt.Errorf("dunlin: size %q has unit %q: known are B, KiB, MiB, GiB, TiB, kB, MB, GB and TB", text, name)
}
