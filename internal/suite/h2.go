package suite

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/tlsmem/tlstest"
)

// OverH2 serves HTTP/2 by an engine, by TLS or in clear text. Requests and answers are put into
// HTTP/2 and back by net/http, one after the other: what is about connections of HTTP/1.1 is not
// asked for. After them the connection must answer another request.
func OverH2(engine dunlin.Engine, secure bool) Adapter {
	return func(t *testing.T, config dunlin.Config, register func(*dunlin.App)) Talker {
		config.Engine, config.H2C, config.Logger = engine, true, slog.New(slog.DiscardHandler)
		addr, _ := start(t, config, Listen(t), secure, register)
		return func(t *testing.T, _ bool, raws ...string) (answers []string) {
			ctx, cancel := context.WithTimeout(t.Context(), Patience)
			defer cancel()
			client := &http.Transport{Protocols: new(http.Protocols), TLSClientConfig: tlstest.Client(), DisableCompression: true}
			client.Protocols.SetHTTP2(true)
			client.Protocols.SetUnencryptedHTTP2(true)
			client.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, addr)
			}
			client.DialTLSContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
				conf := tlstest.Client().Clone()
				conf.NextProtos = []string{"h2"}
				return (&tls.Dialer{Config: conf}).DialContext(ctx, network, addr)
			}
			defer client.CloseIdleConnections()
			for _, raw := range append(raws, Request("GET /probe")) {
				answers = append(answers, askH2(ctx, t, client, secure, raw))
			}
			if probe := answers[len(raws)]; !strings.HasSuffix(probe, "\n\nprobe") {
				t.Errorf("a request after the others was answered with %q", probe)
			}
			return answers[:len(raws)]
		}
	}
}

// OfHTTP1 reports whether a raw request says something that HTTP/2 has no words for.
func OfHTTP1(raw string) bool {
	return strings.Contains(raw, "\r\nConnection:") || strings.Contains(raw, "HTTP/1.0\r\n") || strings.Contains(raw, " http://")
}

// askH2 sends a request by HTTP/2 and renders its answer as one of HTTP/1.1.
func askH2(ctx context.Context, t *testing.T, client http.RoundTripper, secure bool, raw string) string {
	if OfHTTP1(raw) {
		raw = Request("GET /probe")
	}
	req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(raw)))
	if err != nil {
		t.Fatalf("read %.60q: %v", raw, err)
	}
	req = req.WithContext(ctx)
	req.RequestURI, req.TransferEncoding = "", nil
	req.URL.Scheme, req.URL.Host = "http", "h.example"
	if secure {
		req.URL.Scheme = "https"
	}
	if req.URL.Path == "*" {
		req.URL = &url.URL{Scheme: req.URL.Scheme, Host: req.URL.Host, Opaque: "*"}
	}
	if req.ContentLength == 0 {
		req.Body = nil
	}
	resp, err := client.RoundTrip(req)
	if err != nil {
		t.Fatalf("ask %.60q: %v", raw, err)
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || resp.ProtoMajor != 2 {
		t.Fatalf("answer to %.60q: %s, %v", raw, resp.Proto, err)
	}
	resp.Proto, resp.ProtoMajor, resp.ProtoMinor = "HTTP/1.1", 1, 1
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if resp.ContentLength < 0 {
		if resp.ContentLength = 0; len(body) > 0 {
			resp.ContentLength, resp.TransferEncoding = -1, []string{"chunked"}
		}
	}
	var out bytes.Buffer
	if err := resp.Write(&out); err != nil {
		t.Fatalf("write the answer to %.60q: %v", raw, err)
	}
	text := strings.Replace(out.String(), " 599 \r", " 599 status code 599\r", 1) // as servers of net/http have it
	answer, err := ReadAnswer(bufio.NewReader(strings.NewReader(text)), MethodOf(raw))
	if err != nil {
		t.Fatalf("answer to %.60q: %v", raw, err)
	}
	return answer
}
