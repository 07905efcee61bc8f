// Command tasks is the service of docs/FIRST-HOUR.md: the tasks of users, in PostgreSQL.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
)

//go:embed schema.sql
var schema string

// open connects to the database and creates the tables that it does not have.
func open(ctx context.Context, url string) (*pgxpool.Pool, error) {
	db, err := pgxpool.New(ctx, url)
	if err != nil {
		return nil, err
	}
	if _, err := db.Exec(ctx, schema); err != nil {
		db.Close()
		return nil, fmt.Errorf("create tables: %w", err)
	}
	return db, nil
}

func main() {
	ctx := context.Background()
	db, err := open(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	keys := middleware.NewKeyRing([]byte(os.Getenv("SECRET")))
	s := newService(db, keys, os.Getenv("DEV") != "")
	if err := newApp(dunlin.Config{Addr: ":8080", Timeouts: dunlin.Timeouts{Action: 10 * time.Second}}, s).Run(ctx); err != nil {
		log.Fatal(err)
	}
}
