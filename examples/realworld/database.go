package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/backend"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"
)

// connections is the maximum number of connections to the database. Further requests wait for a connection until their deadline.
const connections = 16

// open opens a SQLite file or a PostgreSQL database, and creates missing tables. All other statements of this program are the same
// for both databases.
func open(name string) (*sql.DB, error) {
	id, connect := "bigint generated always as identity primary key", openPostgres
	if !strings.HasPrefix(name, "postgres://") {
		id, connect = "integer primary key", openSQLite
	}
	db, err := connect(name)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if _, err := db.ExecContext(ctx, strings.ReplaceAll(tables, "{id}", id)); err != nil {
		db.Close()
		return nil, fmt.Errorf("make the tables: %w", err)
	}
	return db, nil
}

// openPostgres uses connections of package backend, which need less CPU than those of package net.
func openPostgres(url string) (*sql.DB, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.DialFunc = backend.Dial
	return stdlib.OpenDB(*config), nil
}

func openSQLite(file string) (*sql.DB, error) {
	return sql.Open("sqlite", "file:"+file+"?_pragma=journal_mode(wal)&_pragma=busy_timeout(5000)&_pragma=foreign_keys(1)&_txlock=immediate")
}

const tables = `
	create table if not exists users (
		id {id}, username text not null unique, email text not null unique, password text not null, bio text, image text);
	create table if not exists follows (
		follower bigint not null references users, followed bigint not null references users, primary key (follower, followed));
	create table if not exists articles (
		id {id}, slug text not null unique, title text not null, description text not null, body text not null,
		created text not null, updated text not null, author bigint not null references users);
	create table if not exists tags (
		article bigint not null references articles on delete cascade, tag text not null, primary key (article, tag));
	create table if not exists favorites (
		article bigint not null references articles on delete cascade, reader bigint not null references users, primary key (article, reader));
	create table if not exists comments (
		id {id}, article bigint not null references articles on delete cascade, author bigint not null references users,
		body text not null, created text not null, updated text not null);
	create index if not exists articles_by_author on articles (author);
	create index if not exists articles_by_tag on tags (tag);
	create index if not exists articles_by_reader on favorites (reader);
	create index if not exists comments_by_article on comments (article);`

// transaction runs f in a transaction. If the database ends the transaction because of a concurrent one, it repeats the
// transaction, so f may run up to three times.
func (c *conduit) transaction(ctx context.Context, f func(tx *sql.Tx) error) error {
	for attempt := 1; ; attempt++ {
		err := c.try(ctx, f)
		if attempt == 3 || !conflict(err) {
			return err
		}
	}
}

func (c *conduit) try(ctx context.Context, f func(tx *sql.Tx) error) error {
	tx, err := c.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after Commit
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// conflict reports whether PostgreSQL ended a transaction because of a concurrent one: a serialization failure or a
// deadlock.
func conflict(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "40001" || pg.Code == "40P01")
}

// malformed reports whether PostgreSQL refused text that it cannot store, such as a NUL (class 22, data exception).
func malformed(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && strings.HasPrefix(pg.Code, "22")
}

// away reports whether err means that PostgreSQL is unreachable.
func away(err error) bool {
	var refused *pgconn.ConnectError
	return errors.As(err, &refused)
}

// health answers 503 while the database does not answer.
func (c *conduit) health(r *dunlin.Request) dunlin.Response {
	ctx, cancel := context.WithTimeout(r.Context(), time.Second)
	defer cancel()
	if err := c.db.PingContext(ctx); err != nil {
		return dunlin.Problem(&dunlin.ProblemDetails{Status: 503, Detail: "the database does not answer", Cause: err})
	}
	return dunlin.Text("ok")
}

// querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// all calls scan for every row of a query, and returns the results.
func all[T any](ctx context.Context, db querier, scan func(row) (T, error), query string, args ...any) ([]T, error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		found = append(found, v)
	}
	return found, rows.Err()
}

// row is one row of a query.
type row interface{ Scan(into ...any) error }

// notFoundAs returns missing instead of err if err is that of a row that does not exist.
func notFoundAs(err error, missing error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return missing
	}
	return err
}

// timestamp returns the current time, to the millisecond.
func timestamp() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000Z") }
