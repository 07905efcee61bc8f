package suite

import (
	"bufio"
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/memhttp"
)

// OverTCP serves by an engine, over TCP.
func OverTCP(engine dunlin.Engine) Adapter { return over(engine, false) }

// OverTLS serves by an engine, by TLS over TCP.
func OverTLS(engine dunlin.Engine) Adapter { return over(engine, true) }

func over(engine dunlin.Engine, secure bool) Adapter {
	return func(t *testing.T, config dunlin.Config, register func(*dunlin.App)) Talker {
		config.Engine, config.Logger = engine, slog.New(slog.DiscardHandler)
		addr, _ := start(t, config, Listen(t), secure, register)
		return func(t *testing.T, closes bool, requests ...string) []string {
			return Exchange(t, addr, closes, requests...)
		}
	}
}

// Exchange is ExchangeOn with the server at addr, by TLS if it speaks that.
func Exchange(t *testing.T, addr string, closes bool, raws ...string) (answers []string) {
	t.Helper()
	return ExchangeOn(t, Dial(t, addr), closes, raws...)
}

// ExchangeOn sends raw requests over a connection, one after the other, and returns their
// answers. After them the connection must be closed by the server or, if closes is false,
// answer another request. In the end it is closed.
func ExchangeOn(t *testing.T, conn net.Conn, closes bool, raws ...string) (answers []string) {
	t.Helper()
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(Patience)); err != nil {
		t.Fatal(err)
	}
	br := bufio.NewReader(conn)
	for _, raw := range raws {
		if _, err := io.WriteString(conn, raw); err != nil {
			t.Fatalf("send %.60q: %v", raw, err)
		}
		answer, err := ReadAnswer(br, MethodOf(raw))
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
	probe, err := ReadAnswer(br, http.MethodGet)
	if err != nil || !strings.HasSuffix(probe, "\n\nprobe") {
		t.Errorf("a request after the others was answered with %q, %v", probe, err)
	}
	return answers
}

// InMemory serves without a network. Requests and answers are put into bytes and back by
// net/http.
func InMemory(t *testing.T, config dunlin.Config, register func(*dunlin.App)) Talker {
	config.Logger = slog.New(slog.DiscardHandler)
	app := dunlin.New(config)
	register(app)
	server := app.Extension(exchange.ServerKey{}, nil).(*exchange.Server)
	return func(t *testing.T, closes bool, raws ...string) (answers []string) {
		for _, raw := range raws {
			req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(raw)))
			if err != nil {
				t.Fatalf("read %.60q: %v", raw, err)
			}
			resp, err := memhttp.Serve(server, req)
			if err != nil {
				t.Fatalf("answer to %.60q: %v", raw, err)
			}
			if resp.Close != closes {
				t.Errorf("after %.60q the connection closes: %v", raw, resp.Close)
			}
			if resp.ProtoMinor == 0 && !resp.Close {
				resp.Header.Set("Connection", "keep-alive")
			}
			var out bytes.Buffer
			if err := resp.Write(&out); err != nil {
				t.Fatalf("write the answer to %.60q: %v", raw, err)
			}
			_ = resp.Body.Close()
			text := strings.Replace(out.String(), " 599 \r", " 599 status code 599\r", 1) // as servers of net/http have it
			answer, err := ReadAnswer(bufio.NewReader(strings.NewReader(text)), MethodOf(raw))
			if err != nil {
				t.Fatalf("answer to %.60q: %v", raw, err)
			}
			answers = append(answers, answer)
		}
		return answers
	}
}
