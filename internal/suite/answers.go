package suite

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"slices"
	"strconv"
	"strings"
)

// ReadAnswer reads one response from the wire and formats it for comparison: the status line; the headers sorted by name,
// with the values of a name in their original order, and Date checked and omitted; an empty line; and the decoded body. It
// reads no byte beyond the response.
func ReadAnswer(br *bufio.Reader, method string) (string, error) {
	line, err := br.ReadString('\n')
	if err != nil {
		return "", err
	}
	var headers []string
	length, chunked, date := int64(-1), false, false
	for {
		h, err := br.ReadString('\n')
		if err != nil {
			return "", err
		}
		h, ok := strings.CutSuffix(h, "\r\n")
		if !ok {
			return "", fmt.Errorf("header line without CRLF: %q", h)
		}
		if h == "" {
			break
		}
		name, value, _ := strings.Cut(h, ": ")
		switch name {
		case "Date":
			if _, err := http.ParseTime(value); err != nil || date {
				return "", fmt.Errorf("header %q is wrong or comes twice (%v)", h, err)
			}
			date = true
			continue
		case "Content-Length":
			if length, err = strconv.ParseInt(value, 10, 64); err != nil {
				return "", err
			}
		case "Transfer-Encoding":
			chunked = value == "chunked"
		}
		if h == "Connection: close" && strings.HasPrefix(line, "HTTP/1.0") {
			continue // optional in an answer
		}
		headers = append(headers, h)
	}
	status := strings.TrimSuffix(line, "\r\n")
	if !date {
		return "", fmt.Errorf("%s has no Date", status)
	}
	slices.SortStableFunc(headers, func(a, b string) int {
		nameA, _, _ := strings.Cut(a, ":")
		nameB, _, _ := strings.Cut(b, ":")
		return strings.Compare(nameA, nameB)
	})
	var body []byte
	code := strings.Fields(status)[1]
	switch {
	case method == http.MethodHead, code == "204", code == "304":
	case chunked:
		if body, err = io.ReadAll(httputil.NewChunkedReader(br)); err == nil {
			err = expectBlank(br)
		}
	case length >= 0:
		body = make([]byte, length)
		_, err = io.ReadFull(br, body)
	default:
		body, err = io.ReadAll(br)
	}
	return status + "\n" + strings.Join(append(headers, "", string(body)), "\n"), err
}

// expectBlank reads the empty line after the last chunk.
func expectBlank(br *bufio.Reader) error {
	if line, err := br.ReadString('\n'); err != nil || line != "\r\n" {
		return fmt.Errorf("after the last chunk: %q, %v", line, err)
	}
	return nil
}

// MethodOf returns the method of a raw request.
func MethodOf(raw string) string {
	method, _, _ := strings.Cut(raw, " ")
	return method
}

// Problem renders an answer with problem details in the form of ReadAnswer. before are additional header lines, which must
// sort before Content-Length.
func Problem(status string, body string, before ...string) string {
	lines := append([]string{"HTTP/1.1 " + status}, before...)
	return strings.Join(append(lines, fmt.Sprintf("Content-Length: %d", len(body)), "Content-Type: application/problem+json", "", body), "\n")
}

// Common answers.
var (
	Problem404 = Problem("404 Not Found", `{"title":"Not Found","status":404}`)
	Problem413 = Problem("413 Request Entity Too Large", `{"title":"Request Entity Too Large","status":413,"detail":"the request body is larger than the limit of 1000 bytes"}`)
	Problem500 = Problem("500 Internal Server Error", `{"title":"Internal Server Error","status":500}`)
)

// Plain renders the answer to a request for text.
func Plain(body string, before ...string) string {
	lines := append([]string{"HTTP/1.1 200 OK"}, before...)
	return strings.Join(append(lines, fmt.Sprintf("Content-Length: %d", len(body)), "Content-Type: text/plain; charset=utf-8", "", body), "\n")
}

// Request returns the text of a request. Its body follows an empty header.
func Request(line string, headers ...string) string {
	var body string
	if i := slices.Index(headers, ""); i >= 0 {
		body, headers = headers[i+1], headers[:i]
		if !slices.Contains(headers, "Transfer-Encoding: chunked") {
			headers = append(slices.Clip(headers), fmt.Sprintf("Content-Length: %d", len(body)))
		}
	}
	lines := append([]string{line + " HTTP/1.1", "Host: h.example"}, headers...)
	return strings.Join(lines, "\r\n") + "\r\n\r\n" + body
}

// Clip shortens a large answer for a message.
func Clip(s string) string {
	if len(s) > 2000 {
		return s[:2000] + "…"
	}
	return s
}
