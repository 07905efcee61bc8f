// Realworld is the API of Conduit, the blog of the RealWorld specification, with typed operations.
//
//	go run .                                     serves it on 127.0.0.1:8080 with the SQLite file conduit.db; see /docs
//	go run . -db postgres://user@host/database   the same on PostgreSQL
package main

import (
	"context"
	"crypto/rand"
	"flag"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/dunlinhttp/dunlin"
)

func main() {
	config := dunlin.Config{Timeouts: dunlin.Timeouts{Action: 10 * time.Second}}
	flag.StringVar(&config.Addr, "addr", "127.0.0.1:8080", "`address` to listen on")
	flag.TextVar(&config.Engine, "engine", dunlin.EngineAuto, "engine: auto, std or loop")
	database := flag.String("db", "conduit.db", "SQLite `file`, or postgres:// URL")
	flag.Parse()

	db, err := open(*database)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	secret := []byte(os.Getenv("CONDUIT_SECRET"))
	if len(secret) == 0 {
		slog.Warn("CONDUIT_SECRET is not set: users must log in again after a restart")
		secret = []byte(rand.Text())
	}
	app := newApp(config, &conduit{db: db, secret: secret, log: slog.Default()})
	if err := app.Run(context.Background()); err != nil { // after SIGTERM, Run waits for the running requests
		log.Fatal(err)
	}
}
