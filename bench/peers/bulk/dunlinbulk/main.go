// Command dunlinbulk sends and receives large bodies with Dunlin.
package main

import (
	"context"
	"flag"
	"io"
	"log"
	"net/http"
	"strconv"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/bench/peers/bulk/bulk"
)

func main() {
	config := dunlin.Config{Engine: dunlin.EngineLoop, Limits: dunlin.Limits{MaxBody: bulk.Most}}
	flag.StringVar(&config.Addr, "addr", "127.0.0.1:3000", "`address` to listen on")
	flag.StringVar(&config.TLS.Cert, "tls-cert", "", "PEM `file` of the certificate: serve over TLS")
	flag.StringVar(&config.TLS.Key, "tls-key", "", "PEM `file` of its key")
	flag.TextVar(&config.Limits.Memory, "memory", dunlin.ByteSize(0), "memory the process may take, such as 16MiB")
	flag.Parse()

	app := dunlin.New(config)
	app.Get("/healthz", app.Readiness()).Critical()
	app.Get(bulk.Path, send)
	app.Post(bulk.Path, receive)
	log.Fatal(app.Run(context.Background()))
}

func send(r *dunlin.Request) dunlin.Response {
	n, ok := bulk.Asked(r.Query("bytes"))
	if !ok {
		return dunlin.Problem(&dunlin.ProblemDetails{Status: http.StatusBadRequest, Detail: "bytes must be a number"})
	}
	return dunlin.Stream("application/octet-stream", func(w io.Writer) error { return bulk.Send(w, n) })
}

func receive(r *dunlin.Request) dunlin.Response {
	n, err := bulk.Count(r.Body())
	if err != nil {
		return dunlin.Error(err)
	}
	return dunlin.Text(strconv.FormatInt(n, 10))
}
