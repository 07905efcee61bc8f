// Package files has what serving files needs beside http.ServeContent: opening what a name
// stands for, ETags, ranges as that understands them, files that can only be read forward, and names that no file can have. It
// knows no HTTP but the form of an ETag and of a Range.
package files

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Opener returns the function that opens a file, or the index.html of a
// directory, and says which.
func Opener(open func(name string) (fs.File, error), name string) func() (f fs.File, index bool, err error) {
	return func() (fs.File, bool, error) {
		f, err := open(name)
		if err != nil {
			return nil, false, err
		}
		info, err := f.Stat()
		if err != nil {
			return nil, false, errors.Join(err, f.Close())
		}
		if !info.IsDir() {
			return f, false, nil
		}
		_ = f.Close() // nothing was written to it
		f, err = open(path.Join(name, IndexPage))
		return f, true, err
	}
}

// IndexPage is what a directory stands for.
const IndexPage = "index.html"

// NamesNoFile reports whether a file could not be opened because of its name, which
// systems say in several ways.
func NamesNoFile(err error) bool {
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return slices.Contains(badNames, number)
	}
	wrong, ok := errors.AsType[*fs.PathError](err)
	return ok && wrong.Err.Error() == "path escapes from parent" // that of os.Root has no name
}

// youngFile is the age from which a file that is written again is sure to get
// another time: below it, its ETag is weak (RFC 9110 section 8.8.1).
const youngFile = 2 * time.Second

// Tags are the ETags of files without a time, by name: hashes of their content, which is taken
// to never change.
type Tags struct{ known sync.Map }

// Of returns the ETag of a file, "" for none. t may be nil: then files without a time have none.
func (t *Tags) Of(name string, content io.ReadSeeker, info fs.FileInfo) string {
	if at := info.ModTime(); !at.IsZero() {
		tag := `"` + strconv.FormatInt(at.UnixNano(), 36) + "-" + strconv.FormatInt(info.Size(), 36) + `"`
		if time.Since(at) < youngFile {
			return "W/" + tag
		}
		return tag
	}
	if t == nil {
		return ""
	}
	if tag, known := t.known.Load(name); known {
		return tag.(string)
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, content); err != nil {
		return "" // serving it will fail as well
	}
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		return ""
	}
	tag := `"` + base64.RawURLEncoding.EncodeToString(hash.Sum(nil)[:16]) + `"`
	t.known.Store(name, tag)
	return tag
}

// Range returns the Range field for http.ServeContent, for a content of the given size: nil if the request's
// counts as none, because the method is not GET or its unit is unknown (RFC 9110 section 14.2), and a value
// that ServeContent refuses if it is malformed. By itself ServeContent answers HEAD with a part, refuses
// other units, "BYTES" and numbers beyond an int64, and takes "-0", which names no bytes, for a range.
func Range(method, field string, size int64) []string {
	const malformed = "bytes=-"
	unit, set, _ := strings.Cut(field, "=")
	if method != "GET" || size == 0 || !strings.EqualFold(strings.Trim(unit, " \t"), "bytes") {
		return nil
	}
	var known strings.Builder
	for spec := range strings.SplitSeq(set, ",") {
		spec = strings.Trim(spec, " \t")
		if spec == "" {
			continue // an empty element of a list (RFC 9110 section 5.6.1)
		}
		from, to, dash := strings.Cut(spec, "-")
		first, okFirst := position(from)
		last, okLast := position(to)
		switch {
		case !dash || !okFirst || !okLast || from == "" && to == "" || from != "" && to != "" && last < first:
			return []string{malformed}
		case from == "" && last == 0:
			from, to = strconv.FormatInt(size, 10), "" // which is outside of it, too
		case from == "":
			to = strconv.FormatInt(last, 10)
		case to == "":
			from = strconv.FormatInt(first, 10)
		default:
			from, to = strconv.FormatInt(first, 10), strconv.FormatInt(last, 10)
		}
		if known.Len() > 0 {
			known.WriteByte(',')
		}
		known.WriteString(from + "-" + to)
	}
	if known.Len() == 0 {
		return nil
	}
	return []string{"bytes=" + known.String()}
}

// position reads digits, and nothing else; what is beyond any file is cut down.
func position(s string) (n int64, ok bool) {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = min(n*10+int64(s[i]-'0'), 1<<56)
	}
	return n, true
}

// Seekable returns f, of the given size, as something that can be read from anywhere. open opens
// it again. close closes what that has led to, beside f.
func Seekable(f fs.File, size int64, open func() (f fs.File, index bool, err error)) (content io.ReadSeeker, close func()) {
	if content, ok := f.(io.ReadSeeker); ok {
		return content, func() {}
	}
	all := &forward{file: f, open: open, size: size}
	return all, func() { _ = all.file.Close() } // nothing was written to it
}

// A forward makes a file seekable that can only be read forward, such as
// one in a zip archive: it skips what is before the offset, and opens the file
// again to go back.
type forward struct {
	file fs.File
	open func() (f fs.File, index bool, err error)
	size int64
	at   int64 // where file is
	want int64 // where Read shall begin
}

func (f *forward) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += f.want
	case io.SeekEnd:
		offset += f.size
	}
	if offset < 0 {
		return 0, fs.ErrInvalid
	}
	f.want = offset
	return offset, nil
}

func (f *forward) Read(p []byte) (int, error) {
	if f.want < f.at {
		again, _, err := f.open()
		if err != nil {
			return 0, err
		}
		_ = f.file.Close() // nothing was written to it
		f.file, f.at = again, 0
	}
	if f.want > f.at {
		n, err := io.CopyN(io.Discard, f.file, f.want-f.at)
		f.at += n
		if err != nil {
			return 0, err
		}
	}
	n, err := f.file.Read(p)
	f.at += int64(n)
	f.want = f.at
	return n, err
}
