package dunlin_test

import (
	"bufio"
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/memhttp"
)

// An adapter is something that answers for an app: what the suite takes.
type adapter struct {
	name string
	// serve serves an app with the routes that register makes until the test ends. The function
	// it returns sends requests over one connection, one after the other, and returns their
	// answers as readAnswer renders them. After them the connection must be closed or, if closes
	// is false, answer another request.
	serve func(t *testing.T, config dunlin.Config, register func(*dunlin.App)) (talk talker)
}

type talker func(t *testing.T, closes bool, raws ...string) (answers []string)

// onAdapters runs f once for each adapter that can serve here.
func onAdapters(t *testing.T, f func(t *testing.T, a adapter)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) { f(t, adapter{"memory", serveInMemory}) })
	onEngines(t, func(t *testing.T, engine dunlin.Engine) { f(t, adapter{engine.String(), serveBy(engine)}) })
}

// serveBy serves over TCP.
func serveBy(engine dunlin.Engine) func(t *testing.T, config dunlin.Config, register func(*dunlin.App)) talker {
	return func(t *testing.T, config dunlin.Config, register func(*dunlin.App)) talker {
		config.Engine = engine
		addr, _ := start(t, config, register)
		return func(t *testing.T, closes bool, raws ...string) []string { return exchangeRaw(t, addr, closes, raws...) }
	}
}

// serveInMemory serves without a network. Requests and answers are put into bytes and back by
// net/http.
func serveInMemory(t *testing.T, config dunlin.Config, register func(*dunlin.App)) talker {
	app, _ := newApp(config)
	register(app)
	t.Cleanup(func() { wantNothingHeld(t, app) })
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
			answer, err := readAnswer(bufio.NewReader(strings.NewReader(text)), methodOf(raw))
			if err != nil {
				t.Fatalf("answer to %.60q: %v", raw, err)
			}
			answers = append(answers, answer)
		}
		return answers
	}
}
