//go:build linux

package database_test

import (
	"errors"
	"os"
	"testing"

	"github.com/dunlinhttp/dunlin/bench/internal/database"
)

func TestServer(t *testing.T) {
	s, err := database.Start(t.Context(), nil)
	if errors.Is(err, database.ErrMissing) && os.Getenv("DUNLIN_REQUIRE_ALL") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"world", "cachedworld"} {
		if n, err := s.Number(t.Context(), table, 10_000); err != nil || n < 1 || n > 10_000 {
			t.Errorf("%s: got number %d (error %v), want 1 to 10,000", table, n, err)
		}
	}
	if n, err := s.Number(t.Context(), "world", 10_001); err == nil {
		t.Errorf("got number %d for a row that does not exist", n)
	}
	s.Stop()
	if _, err := s.Number(t.Context(), "world", 1); err == nil {
		t.Error("got an answer from a stopped server")
	}
}
