package typed

import (
	"bytes"
	"io"
	"mime/multipart"
	"testing"
)

// Bodies that both this parser and package mime/multipart accept have the same result. The latter also accepts line breaks
// without a carriage return.
func FuzzParts(f *testing.F) {
	const head = "Content-Disposition: form-data; name=\"a\"\r\n\r\n"
	for _, s := range []string{
		"--x\r\n" + head + "1\r\n--x--", "--x\r\n" + head + "\r\n--x\r\n" + head + "2\r\n--x--\r\n", "pre\r\n--x \r\n" + head + "\r\n\r\n--x--",
		"--x--", "--x\r\n" + head + "--x--", "--x\r\nContent-Disposition: form-data; name=\"\u00e9\\\"\r\n\r\n1\r\n--x--", "--x\r\n" + head + "1\r\n--xy\r\n--x--", "--x\r\n" + head,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		type part struct{ name, file, data string }
		if bytes.Count(body, []byte("\n")) != bytes.Count(body, []byte("\r\n")) {
			return
		}
		var got []part
		for p, err := range parts(body, "x", 1000) {
			if err != nil {
				return
			}
			got = append(got, part{p.name, baseName(p.fileName), string(p.data)})
		}
		r := multipart.NewReader(bytes.NewReader(body), "x")
		for i := 0; ; i++ {
			p, err := r.NextRawPart()
			if err == io.EOF && i == len(got) || err != nil && err != io.EOF {
				return
			}
			if err != nil || i >= len(got) {
				t.Fatalf("got %q, package multipart returns %v after part %d", got, err, i)
			}
			data, err := io.ReadAll(p)
			if err != nil {
				return
			}
			if string(data) != got[i].data || p.FormName() != "" && p.FormName() != got[i].name {
				t.Fatalf("part %d: got %q, package multipart returns %q, %v", i, got[i], data, err)
			}
		}
	})
}
