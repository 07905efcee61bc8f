package main

import (
	"path/filepath"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/pgtest"
)

func sqliteFile(t *testing.T) string { return filepath.Join(t.TempDir(), "conduit.db") }

// postgres starts a PostgreSQL server with an empty database for the time of a test.
func postgres(t *testing.T) string { return pgtest.Start(t) }
