package http1_test

import (
	"testing"

	"github.com/dunlinhttp/dunlin/internal/http1"
)

// Least never returns bytes beyond the end of a body, and never 0 before the end, for any division of the input.
func TestLeastStaysInTheBody(t *testing.T) {
	limits := http1.DefaultLimits()
	for _, body := range []string{
		"0\r\n\r\n",
		"000\r\n\r\n",
		"1\r\na\r\n0\r\n\r\n",
		"5;ext=1\r\nhello\r\n0\r\n\r\n",
		"5 ;ext=1\r\nhello\r\n00\r\nX-Sum: 1\r\n\r\n",
		"010\r\n0123456789abcdef\r\n1\r\nb\r\n0;end\r\n\r\n",
	} {
		for at := 0; at <= len(body); at++ {
			var c http1.Chunked
			c.Reset(&limits, -1)
			fed := 0
			for fed < at && !c.Done() {
				_, n, err := c.Next([]byte(body[fed:at]))
				if err != nil {
					t.Fatalf("%q split at %d: got error %v", body, at, err)
				}
				fed += n
			}
			least, left := c.Least(), int64(len(body)-at)
			if framing, data := c.Coming(); framing+data > 0 {
				twin := c.Twin()
				if got, n, err := twin.Next([]byte(body[at:])); err != nil || int64(n-len(got)) < framing || twin.Remaining()+int64(len(got)) < data {
					t.Errorf("%q after %d bytes: got Coming %d, %d, but %q after %d bytes, error %v", body, at, framing, data, got, n-len(got), err)
				}
			}
			if least > left || least == 0 && left > 0 {
				t.Errorf("%q after %d bytes: got Least %d with %d remaining bytes", body, at, least, left)
			}
		}
	}
}
