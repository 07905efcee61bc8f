package router

import (
	"math/rand/v2"
	"net/netip"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// twins are simple definitions of the built-in constraints.
var twins = map[string]func(string) bool{
	"int": func(s string) bool {
		_, err := strconv.ParseInt(s, 10, 64)
		return err == nil && s[0] != '+'
	},
	"uint":  func(s string) bool { _, err := strconv.ParseUint(s, 10, 64); return err == nil },
	"uuid":  regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`).MatchString,
	"ipv4":  func(s string) bool { a, err := netip.ParseAddr(s); return err == nil && a.Is4() },
	"ipv6":  func(s string) bool { a, err := netip.ParseAddr(s); return err == nil && a.Is6() && a.Zone() == "" },
	"hex":   regexp.MustCompile(`^[0-9a-fA-F]+$`).MatchString,
	"alpha": regexp.MustCompile(`^[a-zA-Z]+$`).MatchString,
	"alnum": regexp.MustCompile(`^[a-zA-Z0-9]+$`).MatchString,
	"slug":  regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`).MatchString,
	"date":  func(s string) bool { _, err := time.Parse(time.DateOnly, s); return err == nil },
	"bool":  func(s string) bool { return s == "true" || s == "false" },
}

var builtinSamples = []string{
	"", "0", "-", "-0", "+1", "00", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
	"18446744073709551615", "18446744073709551616", "0000000000000000000000000000001", "1a", "٣", "%2F",
	"8E605AD7-554A-450D-A72D-D0098D336E8E", "8e605ad7-554a-450d-a72d-d0098d336e8e", "8E605AD7-554A-450D-A72D-D0098D336E8", "8E605AD7-554A-450D-A72D-D0098D336G8E",
	"8E605AD7+554A-450D-A72D-D0098D336E8E", "gE605AD7-554A-450D-A72D-D0098D336E8E", "8E605AD7-554A-450D-A72D-D0098D336E8\xc5",
	"127.0.0.1", "255.255.255.255", "256.0.0.1", "1.2.3", "1.2.3.4.5", "01.2.3.4", "1..2.3", ".1.2.3", "1.2.3.", "1.2.3.0",
	"::", "::1", "1::", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1::2::3", "::ffff:1.2.3.4", "1:2:3:4:5:6:1.2.3.4",
	"1:2:3:4:5:6:7:1.2.3.4", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8::", "fe80::1%eth0", ":1", "1:", "12345::", ":::", "g::", "::1.2.3", "1.2.3.4::",
	"deadBEEF", "0123456789abcdefABCDEF", "0123456789abcdefg", "xyz", "Zz", "a-b", "a--b", "-a", "a-", "A-b", "a_b",
	"2024-02-29", "2023-02-29", "1900-02-29", "2000-02-29", "2024-13-01", "2024-00-10", "2024-04-31", "2024-4-3", "0000-01-01", "2024-12-31", "2024/12/31", "2024-01-00",
	"true", "false", "TRUE", "1", "yes",
}

func TestBuiltinConstraints(t *testing.T) {
	if len(twins) != len(builtins) {
		t.Fatalf("got %d definitions for %d constraints", len(twins), len(builtins))
	}
	accepted := make(map[string]int)
	for name, c := range builtins {
		superset := regexp.MustCompile(wholeValue(c.superset))
		for _, s := range mutations(builtinSamples) {
			got, want := c.match(s, nil), twins[name](s)
			if got != want {
				t.Errorf("%s %q: got %v, want %v", name, s, got, want)
			}
			if got && !superset.MatchString(s) {
				t.Errorf("%s %q: accepted by the function, but not by the expression", name, s)
			}
			if got {
				accepted[name]++
			}
		}
		if accepted[name] == 0 {
			t.Errorf("%s accepts none of the samples", name)
		}
	}
}

// mutations returns the samples and variations of them.
func mutations(samples []string) []string {
	const alphabet = "0123456789abcdefABCDEFgz.:-+%/\x80"
	r := rand.New(rand.NewPCG(1, 2))
	all := samples
	for _, s := range samples {
		for range 200 {
			b := []byte(s)
			for range 1 + r.IntN(2) {
				c := alphabet[r.IntN(len(alphabet))]
				switch i := r.IntN(len(b) + 1); {
				case i == len(b):
					b = append(b, c)
				case r.IntN(3) == 0:
					b = append(b[:i], b[i+1:]...)
				default:
					b[i] = c
				}
			}
			all = append(all, string(b))
		}
	}
	return all
}

func TestHexWord(t *testing.T) {
	for c := range 256 {
		for shift := 0; shift < 64; shift += 8 {
			word := uint64(0x3146614139306246)&^(0xFF<<shift) | uint64(c)<<shift
			if got, want := hexWord(word), isHex(byte(c)); got != want {
				t.Fatalf("byte %#x at %d: got %v, want %v", c, shift/8, got, want)
			}
		}
	}
}
