// Command service is the service under load in the stress tests. It receives and sends bodies whose content can be
// verified, and answers at once or after a delay. It reports its state on stdout, in lines that begin with a word:
//
//	serving <pid> <address> <engine>
//	ended   <pid> <error>
//
// It ends when its standard input is closed, so that it does not remain when the test ends.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/bench/stress/pattern"
	"github.com/dunlinhttp/dunlin/middleware"
)

func main() {
	pid := os.Getpid()
	config := dunlin.Config{
		Limits: dunlin.Limits{MaxBody: 1 << 40},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{ReplaceAttr: withoutStacks})),
		Ready:  func(addr net.Addr, e dunlin.Engine) { fmt.Printf("serving %d %s %s\n", pid, addr, e) },
	}
	flag.StringVar(&config.Addr, "addr", "127.0.0.1:0", "`address` to listen on")
	flag.StringVar(&config.TLS.Addr, "tls-addr", "", "`address` to serve over TLS in addition to -addr")
	flag.StringVar(&config.TLS.Cert, "tls-cert", "", "PEM `file` of the certificate")
	flag.StringVar(&config.TLS.Key, "tls-key", "", "PEM `file` of its key")
	h2c := flag.Bool("h2c", false, "accept HTTP/2 in clear text")
	flag.TextVar(&config.Engine, "engine", dunlin.EngineAuto, "engine: auto, std or loop")
	flag.TextVar(&config.Limits.Memory, "memory", dunlin.ByteSize(0), "memory the process may take, such as 32MiB; 0: the container's limit")
	flag.DurationVar(&config.Process.DrainTimeout, "drain", 0, "how long running requests may take to end; 0: the default")
	flag.DurationVar(&config.Limits.QueueTarget, "queue-target", 0, "how long requests may wait in an overload; 0: the default, negative: forever")
	flag.Parse()
	if *h2c {
		config.H2C = dunlin.H2CPriorKnowledge
	}

	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3)
	}()
	err := newApp(config).Run(context.Background())
	fmt.Printf("ended %d %v\n", pid, err)
	if err != nil {
		os.Exit(1)
	}
}

// withoutStacks removes the stacks of panics from the log, because clients cause many panics.
func withoutStacks(_ []string, a slog.Attr) slog.Attr {
	if a.Key == "stack" {
		return slog.Attr{}
	}
	return a
}

// newApp registers the routes.
func newApp(config dunlin.Config) *dunlin.App {
	app := dunlin.New(config)
	app.Get("/pid", func(*dunlin.Request) dunlin.Response { return dunlin.Text(strconv.Itoa(os.Getpid())) })
	app.Get("/sleep/{ms:int}", sleep)
	typedRoutes(app)
	app.Post("/upload", upload)
	app.Get("/stream/{seed:int}/{size:int}", stream)
	app.Get("/number/{n}", func(r *dunlin.Request) dunlin.Response { return dunlin.Text(r.Param("n")) })
	app.Get("/zeros/{size:int}", zeros)
	app.Get("/late/{ms:int}/{size:int}", late)
	app.Get("/shared", func(*dunlin.Request) dunlin.Response { return dunlin.Bytes("application/octet-stream", shared) })
	app.Get("/problem/{size:int}", problem)
	app.HandleStd("GET", "/std", http.HandlerFunc(writeShared))
	app.Mount("/mounted", http.HandlerFunc(writePieces))
	cache := middleware.NewCache(middleware.CacheConfig{MaxBytes: 8 << 20, MaxEntry: 2 << 20, App: app})
	app.Get("/cached/{n:int}", cache.Middleware()(func(*dunlin.Request) dunlin.Response {
		return dunlin.Bytes("application/octet-stream", bytes.Clone(shared)).CachePublic(time.Minute)
	}))
	app.Get("/flood", flood)
	app.Post("/keep", keep).MaxBody(8 << 20)
	app.Get("/events", events)
	app.Get("/panic", func(*dunlin.Request) dunlin.Response { panic("requested by a client") })
	app.Get("/sometimes", sometimes)
	app.Get("/stats", func(*dunlin.Request) dunlin.Response { return dunlin.JSON(app.Stats()) }).Critical()
	app.Get("/goroutines", goroutines).Critical()
	return app
}

// zeros answers with a body of the requested length. It makes the whole body before it answers.
func zeros(r *dunlin.Request) dunlin.Response {
	size, err := strconv.Atoi(r.Param("size"))
	if err != nil || size > 8<<20 {
		return dunlin.NotFound()
	}
	return dunlin.Bytes("application/octet-stream", make([]byte, size))
}

// late answers with a body of the requested length after the requested time.
func late(r *dunlin.Request) dunlin.Response {
	_ = sleep(r)
	return zeros(r)
}

// problem answers with an error whose text has the requested length.
func problem(r *dunlin.Request) dunlin.Response {
	size, err := strconv.Atoi(r.Param("size"))
	if err != nil || size > 8<<20 {
		return dunlin.NotFound()
	}
	return dunlin.Error(&dunlin.ProblemDetails{Status: http.StatusUnprocessableEntity, Detail: strings.Repeat("x", size)})
}

// shared is a body that all clients share.
var shared = make([]byte, 1<<20)

// writeShared writes a copy of shared immediately, like a standard handler that has rendered a page.
func writeShared(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(bytes.Clone(shared)) }

// writePieces writes as many bytes as shared has, in pieces.
func writePieces(w http.ResponseWriter, _ *http.Request) {
	for i := 0; i < len(shared); i += 16 << 10 {
		if _, err := w.Write(shared[i : i+16<<10]); err != nil {
			return
		}
	}
}

// flood sends events as fast as the client reads them.
func flood(*dunlin.Request) dunlin.Response {
	return dunlin.SSE(func(e *dunlin.Events) error {
		for data := strings.Repeat("x", 8<<10); ; {
			if err := e.Send(dunlin.Event{Data: data}); err != nil {
				return err
			}
		}
	})
}

// keep reads the whole body into memory and hashes it.
func keep(r *dunlin.Request) dunlin.Response {
	body, err := r.Bytes()
	if err != nil {
		return dunlin.Error(err)
	}
	return dunlin.Text(fmt.Sprintf("%d %x", len(body), sha256.Sum256(body)))
}

// events sends a numbered event ten times a second.
func events(*dunlin.Request) dunlin.Response {
	return dunlin.SSE(func(e *dunlin.Events) error {
		every := time.NewTicker(100 * time.Millisecond)
		defer every.Stop()
		for n := 1; ; n++ {
			if err := e.Send(dunlin.Event{ID: strconv.Itoa(n), Data: "tick"}); err != nil {
				return err
			}
			select {
			case <-every.C:
			case <-e.Done():
				return nil
			}
		}
	})
}

var asked atomic.Int64

// sometimes answers at once, except for one of ten requests, which waits.
func sometimes(*dunlin.Request) dunlin.Response {
	if asked.Add(1)%10 == 0 {
		time.Sleep(time.Second)
	}
	return dunlin.Text("ok")
}

// goroutines lists the stacks of all goroutines.
func goroutines(*dunlin.Request) dunlin.Response {
	var list bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&list, 1); err != nil {
		return dunlin.Error(err)
	}
	return dunlin.Text(list.String())
}

// sleep waits even if the client has disconnected, as a query to a database may.
func sleep(r *dunlin.Request) dunlin.Response {
	ms, err := strconv.Atoi(r.Param("ms"))
	if err != nil {
		return dunlin.Error(err)
	}
	time.Sleep(time.Duration(ms) * time.Millisecond)
	return dunlin.Text(strconv.Itoa(os.Getpid()))
}

// upload counts and hashes the bytes of the body without keeping them.
func upload(r *dunlin.Request) dunlin.Response {
	h := sha256.New()
	n, err := io.Copy(h, r.Body())
	if err != nil {
		return dunlin.Error(err)
	}
	return dunlin.Text(fmt.Sprintf("%d %s", n, hex.EncodeToString(h.Sum(nil))))
}

// stream sends a pattern in pieces.
func stream(r *dunlin.Request) dunlin.Response {
	seed, err := strconv.ParseUint(r.Param("seed"), 10, 64)
	if err != nil {
		return dunlin.Error(err)
	}
	size, err := strconv.ParseInt(r.Param("size"), 10, 64)
	if err != nil {
		return dunlin.Error(err)
	}
	return dunlin.Stream("application/octet-stream", func(w io.Writer) error {
		return pattern.Pieces(seed, size, func(piece []byte) error {
			_, err := w.Write(piece)
			return err
		})
	})
}
