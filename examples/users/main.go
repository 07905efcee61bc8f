// Command users is Dunlin's reference service, which the benchmarks measure. It has one route for each feature.
//
//	go run ./examples/users -addr 127.0.0.1:3000 -engine auto
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/lowmem"
)

func main() {
	config := dunlin.Config{
		Ready: func(addr net.Addr, engine dunlin.Engine) {
			fmt.Printf("users: serving %s (engine %s)\n", addr, engine)
		},
	}
	flag.StringVar(&config.Addr, "addr", "127.0.0.1:3000", "`address` to listen on")
	flag.StringVar(&config.TLS.Addr, "tls-addr", "", "`address` to serve over TLS in addition to -addr")
	flag.StringVar(&config.TLS.Cert, "tls-cert", "", "PEM `file` of the certificate: serve over TLS")
	flag.StringVar(&config.TLS.Key, "tls-key", "", "PEM `file` of its key")
	flag.DurationVar(&config.Process.DrainGrace, "grace", 0, "how long to go on serving after a signal to stop")
	h2c := flag.Bool("h2c", false, "also accept HTTP/2 in clear text")
	flag.TextVar(&config.Engine, "engine", dunlin.EngineAuto, "engine: auto, std or loop")
	flag.TextVar(&config.Limits.Memory, "memory", dunlin.ByteSize(0), "memory the process may take, such as 16MiB; 0: the container's limit")
	flag.IntVar(&config.Limits.MaxConcurrent, "max-concurrent", 0, "`actions` that may wait at the same time; 0: a default that depends on the memory")
	flag.DurationVar(&config.Limits.QueueTarget, "queue-target", 0, "how long requests may wait in an overload; 0: the default, negative: forever")
	profiles := flag.String("pprof", "", "inner `address`, such as 127.0.0.1:6060, that serves /debug/pprof")
	flag.Parse()
	if *h2c {
		config.H2C = dunlin.H2CPriorKnowledge
	}
	if config.Limits.Memory > 0 {
		time.AfterFunc(time.Second, lowmem.DropProgram)
	}

	app := newApp(config)
	if *profiles != "" {
		addProfiles(app, *profiles)
	}
	if err := app.Run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "users:", err)
		os.Exit(1)
	}
}

// newApp registers the routes.
func newApp(config dunlin.Config) *dunlin.App {
	app := dunlin.New(config)
	app.Get("/plaintext", plaintext)
	app.Get("/json", hello)
	app.Get("/users/{id}", showUser)
	app.Get("/users/{id}/{action}", showAction)
	app.Post("/echo", echo)
	app.Get("/api/v1/users", listUsers)
	app.Get("/api/v1/users/seq", streamUsers)
	app.Get("/headers", headers)
	app.Get("/sleep", sleep)
	app.Get("/events", events)
	app.Get("/ticks", ticks)
	app.Get("/panic", func(*dunlin.Request) dunlin.Response { panic("requested by the client") })
	app.Get("/stats", func(*dunlin.Request) dunlin.Response { return dunlin.JSON(app.Stats()) }).Critical()
	app.Get("/paths/{rest...}", plaintext) // to measure a catch-all with paths of any length
	app.Get("/healthz", app.Readiness()).Critical()
	return app
}

func plaintext(*dunlin.Request) dunlin.Response { return dunlin.Text("Hello, World!") }

func hello(*dunlin.Request) dunlin.Response {
	return dunlin.JSON(struct {
		Message string `json:"message"`
	}{"Hello, World!"})
}

func showUser(r *dunlin.Request) dunlin.Response { return dunlin.Text(r.Param("id")) }

func showAction(r *dunlin.Request) dunlin.Response {
	return dunlin.JSON(struct {
		ID     string `json:"id"`
		Action string `json:"action"`
	}{r.Param("id"), r.Param("action")})
}

// echo returns the request body without a copy.
func echo(r *dunlin.Request) dunlin.Response {
	body, err := r.Bytes()
	if err != nil {
		return dunlin.Error(err)
	}
	return dunlin.Bytes(r.Header("Content-Type"), body)
}

// sleep blocks its goroutine, as an action may.
func sleep(r *dunlin.Request) dunlin.Response {
	ms, err := dunlin.Param[int](r, "ms")
	if err != nil {
		return dunlin.Error(err)
	}
	if ms < 0 || ms > 60_000 {
		return dunlin.Problem(&dunlin.ProblemDetails{Status: http.StatusBadRequest, Detail: "ms must be between 0 and 60000"})
	}
	select {
	case <-time.After(time.Duration(ms) * time.Millisecond):
	case <-r.Context().Done():
	}
	return dunlin.Text(fmt.Sprintf("slept %d ms\n", ms))
}

// events sends a numbered event each second until the client disconnects.
func events(*dunlin.Request) dunlin.Response {
	return dunlin.SSE(func(e *dunlin.Events) error {
		every := time.NewTicker(time.Second)
		defer every.Stop()
		for n := 1; ; n++ {
			select {
			case <-every.C:
			case <-e.Done():
				return nil
			}
			if err := e.Send(dunlin.Event{ID: strconv.Itoa(n), Data: "tick"}); err != nil {
				return err
			}
		}
	})
}

// ticks sends a numbered line each second in a response that is streamed as text.
func ticks(r *dunlin.Request) dunlin.Response {
	return dunlin.Stream("text/plain; charset=utf-8", func(w io.Writer) error {
		every := time.NewTicker(time.Second)
		defer every.Stop()
		for n := 1; ; n++ {
			select {
			case <-every.C:
			case <-r.Context().Done():
				return r.Context().Err()
			}
			if _, err := io.WriteString(w, strconv.Itoa(n)+" tick\n"); err != nil {
				return err
			}
			if err := dunlin.Flush(w); err != nil {
				return err
			}
		}
	})
}

var cachedText = dunlin.NewHeaderBlock("Content-Type", "text/plain", "Cache-Control", "public,max-age=30")

func headers(*dunlin.Request) dunlin.Response { return dunlin.Text("hello world!").With(cachedText) }
