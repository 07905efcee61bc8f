package load

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// Bulk transfers a large amount of data on one connection. A download is the response to a GET of Path?bytes=N. An upload is
// the body of a POST, whose bytes the server counts.
type Bulk struct {
	Addr, Path string
	Bytes      int64
	Up, TLS    bool
}

// Run returns when all data has been transferred. It returns an error if the server has sent or counted another number of
// bytes.
func (b Bulk) Run(ctx context.Context) error {
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // no other protocol than HTTP/1.1 is offered
		ReadBufferSize:  bulkPiece, WriteBufferSize: bulkPiece,
	}}
	defer client.CloseIdleConnections()
	url := "http://" + b.Addr + b.Path
	if b.TLS {
		url = "https://" + b.Addr + b.Path
	}
	method, body := http.MethodPost, io.Reader(io.LimitReader(zeros{}, b.Bytes))
	if !b.Up {
		method, body, url = http.MethodGet, http.NoBody, url+"?bytes="+strconv.FormatInt(b.Bytes, 10)
	}
	request, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return err
	}
	if b.Up {
		request.ContentLength = b.Bytes
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	moved, err := b.moved(answer)
	if err == nil && moved != b.Bytes {
		err = fmt.Errorf("%s %s: %d bytes, want %d", method, b.Path, moved, b.Bytes)
	}
	return err
}

// moved returns the number of bytes that the server has sent or counted.
func (b Bulk) moved(answer *http.Response) (int64, error) {
	if answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: status %d", b.Path, answer.StatusCode)
	}
	if !b.Up {
		return io.CopyBuffer(struct{ io.Writer }{io.Discard}, answer.Body, make([]byte, bulkPiece))
	}
	count, err := io.ReadAll(io.LimitReader(answer.Body, 100))
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(string(count), 10, 64)
}

const bulkPiece = 64 << 10

// zeros is a body of zeros without an end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
