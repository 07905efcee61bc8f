package http1_test

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/http1"
)

var (
	sizeLine = regexp.MustCompile(`^([0-9a-fA-F]{1,16})([ \t]*;[^\x00-\x08\x0a-\x1f\x7f]*)?\r\n`)

	// sizeLineStart matches the beginning of a size line whose LF is missing.
	sizeLineStart = regexp.MustCompile(`^(?:([0-9a-fA-F]{1,16})([ \t]*;[^\x00-\x08\x0a-\x1f\x7f]*|[ \t]+\r?|)\r?)?$`)
)

// slowBody is the reference implementation of Chunked. It has the data, the trailers, and the outcome of the body, with a status
// instead of the
// error.
type slowBody struct {
	data, trailers string
	done           bool
	n              int64
	status         int
}

func slowDecode(in string, lim http1.Limits, maxBody int64) (b slowBody) {
	at, extensions, chunks := 0, 0, 0
	fail := func(status int) slowBody {
		b.status = status
		b.trailers = ""
		return b
	}
	for {
		m := sizeLine.FindStringSubmatch(in[at:])
		partial := m == nil
		if partial {
			if m = sizeLineStart.FindStringSubmatch(in[at:]); m == nil || strings.ContainsAny(m[2], "\r") {
				return fail(400)
			}
		}
		if extensions += len(m[2]); extensions > lim.MaxExtension {
			return fail(400)
		}
		size, err := strconv.ParseInt("0"+m[1], 16, 64)
		if err != nil {
			return fail(400)
		}
		if partial {
			return b
		}
		at += len(m[0])
		if size == 0 {
			break
		}
		if size > maxBody-int64(len(b.data)) {
			return fail(413)
		}
		if chunks++; chunks > lim.MaxChunks+len(b.data)/16 {
			return fail(400)
		}
		got := in[at:min(int64(len(in)), int64(at)+size)]
		b.data += got
		if at += len(got); int64(len(got)) < size {
			return b
		}
		end := in[at:min(len(in), at+2)]
		if !strings.HasPrefix("\r\n", end) {
			return fail(400)
		}
		if at += len(end); len(end) < 2 {
			return b
		}
	}
	return slowTrailers(b, in, at, lim)
}

func slowTrailers(b slowBody, in string, at int, lim http1.Limits) slowBody {
	fields := 0
	for section := at; ; {
		end := lineEnd(in, at, section+lim.MaxTrailer)
		if end == 0 && len(in) > section+lim.MaxTrailer {
			b.status = 431
		}
		if end == 0 {
			b.trailers = ""
			return b
		}
		line := in[at:end]
		at = end
		if line == "\r\n" {
			b.done, b.n = true, int64(end)
			return b
		}
		m := fieldLine.FindStringSubmatch(line)
		switch {
		case m == nil:
			b.status = 400
		case fields == lim.MaxFields:
			b.status = 431
		case slices.Contains(slowForbidden, strings.ToLower(m[1])):
			b.status = 400
		}
		if b.status != 0 {
			b.trailers = ""
			return b
		}
		fields++
		b.trailers += m[1] + "=" + strings.TrimRight(m[2], " \t") + "\n"
	}
}

// slowForbidden lists the fields that are forbidden in a trailer.
var slowForbidden = strings.Fields(`
	age authentication-info authorization cache-control connection content-encoding content-length
	content-range content-type cookie date expect expires forwarded host if-match
	if-modified-since if-none-match if-range if-unmodified-since keep-alive location max-forwards
	origin pragma proxy-authenticate proxy-authentication-info proxy-authorization
	proxy-connection range retry-after set-cookie te trailer transfer-encoding upgrade vary
	via warning www-authenticate x-forwarded-for x-forwarded-host x-forwarded-proto`)

func TestForbiddenTrailers(t *testing.T) {
	lim := http1.DefaultLimits()
	for _, name := range slowForbidden {
		b := decode([]byte("0\r\n"+strings.ToUpper(name)+": a\r\n\r\n"), &lim, -1, 1, nil)
		if statusOf(b.err) != 400 || b.done {
			t.Errorf("%s: got error %v", name, b.err)
		}
	}
}

func chunkedSeeds() []string {
	seeds := []string{"", "5\r\nhello\r\n0\r\n\r\nnext", "1;a=b\r\nx\r\n0\r\nA: b\r\n\r\n", "1 \t;a\r\nx\r\n", "0\r\nte: a\r\n", strings.Repeat("1\r\nx\r\n", 5) + "0\r\n\r\n", "20\r\n" + strings.Repeat("x", 32) + "\r\n" + strings.Repeat("1\r\nx\r\n", 4) + "0\r\n\r\n"}
	for _, r := range chunkedRefusals {
		seeds = append(seeds, r.head)
	}
	return seeds
}

func statusOf(err error) int {
	var e http1.Error
	if errors.As(err, &e) {
		return e.Status()
	}
	return 0
}

// FuzzChunked compares the decoder with its reference implementation.
func FuzzChunked(f *testing.F) {
	for _, s := range chunkedSeeds() {
		f.Add([]byte(s), 12)
	}
	f.Fuzz(func(t *testing.T, in []byte, maxBody int) {
		maxBody &= 0xFFFF
		got := decode(in, &smallLimits, int64(maxBody), 7, nil)
		status := statusOf(got.err)
		want := slowDecode(string(in), smallLimits, int64(maxBody))
		if want.status != status || want.data != got.data || want.done != got.done || want.n != got.n ||
			want.done && want.trailers != got.trailers {
			t.Errorf("%q, at most %d bytes:\ngot  %+v\nwant %+v", in, maxBody, got, want)
		}
	})
}

// FuzzChunkedSplit checks that the result does not depend on the division of the input or on the room for data.
func FuzzChunkedSplit(f *testing.F) {
	for _, s := range chunkedSeeds() {
		f.Add([]byte(s), uint(len(s)/2))
	}
	f.Fuzz(func(t *testing.T, in []byte, cut uint) {
		checkChunkedSplits(t, in, []int{int(cut % uint(len(in)+1))})
	})
}

func TestChunkedEverySplit(t *testing.T) {
	for _, s := range chunkedSeeds() {
		for cut := range len(s) {
			checkChunkedSplits(t, []byte(s), []int{cut})
		}
	}
}

func checkChunkedSplits(t *testing.T, in []byte, cuts []int) {
	t.Helper()
	var all []int
	for i := range in {
		all = append(all, i)
	}
	want := decode(in, &smallLimits, 20, len(in)+1, nil)
	for _, cuts := range [][]int{cuts, all} {
		for _, size := range []int{1, 3, len(in) + 1} {
			if got := decode(in, &smallLimits, 20, size, cuts); got != want {
				t.Fatalf("%q split at %v with room for %d bytes:\ngot  %+v\nwant %+v", in, cuts, size, got, want)
			}
		}
	}
}
