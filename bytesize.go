package dunlin

import "github.com/dunlinhttp/dunlin/internal/bytesize"

// A ByteSize is an amount of memory in bytes. Its text is an integer and a unit: B, KiB, MiB, GiB or TiB (powers of
// 1024), or kB, MB, GB or TB (powers of 1000). A text without a unit is in bytes. It can be a flag (flag.TextVar).
type ByteSize int64

// String returns the size in the largest unit that needs no fraction.
func (s ByteSize) String() string { return bytesize.Text(int64(s)) }

// MarshalText returns String.
func (s ByteSize) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a size such as 16MiB, 500 MB or 65536.
func (s *ByteSize) UnmarshalText(text []byte) error { return bytesize.Parse((*int64)(s), text) }
