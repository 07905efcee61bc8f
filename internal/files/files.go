// Package files has the parts of serving files that http.ServeContent lacks: opening a file or the index of a
// directory, ETags, Range fields that ServeContent understands, files without Seek, and errors for invalid names. It
// does not depend on HTTP requests and responses.
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

// Opener returns a function that opens the file with the given name. If the file is a directory, the function opens
// its index.html, and index is true.
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
		_ = f.Close() // an error does not matter, because the file was only read
		f, err = open(path.Join(name, IndexPage))
		return f, true, err
	}
}

// IndexPage is the name of the file that is served for a directory.
const IndexPage = "index.html"

// NamesNoFile reports whether err means that the name of a file is invalid. Such errors depend on the operating
// system.
func NamesNoFile(err error) bool {
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return slices.Contains(badNames, number)
	}
	wrong, ok := errors.AsType[*fs.PathError](err)
	return ok && wrong.Err.Error() == "path escapes from parent" // package os does not export this error of os.Root
}

// youngFile is the age below which another write to a file may leave the modification time unchanged. A younger file
// has a weak ETag (RFC 9110 section 8.8.1).
const youngFile = 2 * time.Second

// Tags has the ETags of files without a modification time, by name. They are hashes of the contents, which must not
// change. A Tags is safe for concurrent use.
type Tags struct{ known sync.Map }

// Of returns the ETag of a file, or "". If t is nil, a file without a modification time has no ETag.
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
		return "" // serving the file will fail, too
	}
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		return ""
	}
	tag := `"` + base64.RawURLEncoding.EncodeToString(hash.Sum(nil)[:16]) + `"`
	t.known.Store(name, tag)
	return tag
}

// Range returns the field Range that http.ServeContent should get for a content of the given size. field is the value
// that the request has. The result is nil if the field must be ignored, because the method is not GET or the unit is
// unknown (RFC 9110 section 14.2). For a malformed field the result is a value that ServeContent refuses.
//
// ServeContent needs this help: it answers HEAD with a part, refuses other units, "BYTES", and numbers beyond an
// int64, and accepts "-0", which is not a valid range.
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
			continue // an empty element of the list (RFC 9110 section 5.6.1)
		}
		from, to, dash := strings.Cut(spec, "-")
		first, okFirst := position(from)
		last, okLast := position(to)
		switch {
		case !dash || !okFirst || !okLast || from == "" && to == "" || from != "" && to != "" && last < first:
			return []string{malformed}
		case from == "" && last == 0:
			from, to = strconv.FormatInt(size, 10), "" // a range that is also outside of the content
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

// position parses a string of digits. A number that is larger than the size of any file is replaced by a smaller
// number.
func position(s string) (n int64, ok bool) {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = min(n*10+int64(s[i]-'0'), 1<<56)
	}
	return n, true
}

// Seekable returns a seekable view of f. size is the size of f. open opens the same file again. close closes the files
// that were opened by open, but not f.
func Seekable(f fs.File, size int64, open func() (f fs.File, index bool, err error)) (content io.ReadSeeker, close func()) {
	if content, ok := f.(io.ReadSeeker); ok {
		return content, func() {}
	}
	all := &forward{file: f, open: open, size: size}
	return all, func() { _ = all.file.Close() } // an error does not matter, because the file was only read
}

// A forward makes a file seekable that has no Seek, such as a file in a zip archive. To move forward, it skips bytes.
// To move back, it opens the file again.
type forward struct {
	file fs.File
	open func() (f fs.File, index bool, err error)
	size int64
	at   int64 // offset of file
	want int64 // offset of the next Read
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
		_ = f.file.Close() // an error does not matter, because the file was only read
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
