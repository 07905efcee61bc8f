package dunlin_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// readAnswer reads one response from the wire and renders it for comparison:
// status line, headers ordered by name (the values of one name in the order
// they came, Date checked and left out), an empty line, the body without its
// chunks. It reads no byte beyond the response.
func readAnswer(br *bufio.Reader, method string) (string, error) {
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
			continue // goes without saying, and may be said
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

// method returns the method of a raw request.
func methodOf(raw string) string {
	method, _, _ := strings.Cut(raw, " ")
	return method
}

// exchange sends raw requests over one connection, one after the other, and
// returns their answers. After them the connection must be closed by the server
// or, if closes is false, answer another request.
func exchangeRaw(t *testing.T, addr string, closes bool, raws ...string) (answers []string) {
	t.Helper()
	conn := dial(t, addr)
	br := bufio.NewReader(conn)
	for _, raw := range raws {
		if _, err := io.WriteString(conn, raw); err != nil {
			t.Fatalf("send %.60q: %v", raw, err)
		}
		answer, err := readAnswer(br, methodOf(raw))
		if err != nil {
			t.Fatalf("answer to %.60q: %v", raw, err)
		}
		answers = append(answers, answer)
	}
	if closes {
		if b, err := br.ReadByte(); err == nil {
			t.Errorf("the connection goes on after the answer, with byte %q", b)
		}
		return answers
	}
	if _, err := io.WriteString(conn, "GET /probe HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
		t.Fatalf("send a request after the others: %v", err)
	}
	probe, err := readAnswer(br, http.MethodGet)
	if err != nil || !strings.HasSuffix(probe, "\n\nprobe") {
		t.Errorf("a request after the others was answered with %q, %v", probe, err)
	}
	return answers
}

// answered reads one answer to GET, which must have the status and the body.
func answered(t *testing.T, br *bufio.Reader, status int, body string) {
	t.Helper()
	got, err := readAnswer(br, "GET")
	if err != nil {
		t.Fatalf("instead of %d %q: %v", status, body, err)
	}
	head, gotBody, _ := bytes.Cut([]byte(got), []byte("\n\n"))
	if string(head[9:12]) != strconv.Itoa(status) || string(gotBody) != body {
		t.Fatalf("answered with\n%s\nwant %d %q", got, status, body)
	}
}
