package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
)

// The official collection of the RealWorld specification, on an empty database and on one with an article.
func TestPostmanCollection(t *testing.T) {
	newman, err := exec.LookPath("newman")
	if err != nil {
		missing(t, "newman is not installed (npm install -g newman)")
	}
	for _, test := range []struct {
		name     string
		engine   dunlin.Engine
		database func(*testing.T) string
	}{
		{"SQLite, loop engine", dunlin.EngineLoop, sqliteFile},
		{"PostgreSQL, net/http", dunlin.EngineStd, postgres},
	} {
		t.Run(test.name, func(t *testing.T) {
			app, _ := service(t, dunlin.Config{Engine: test.engine}, test.database(t))
			address := "http://" + dunlintest.Serve(t, app) + "/api"
			collection(t, newman, address, "empty", 311)
			article(t, app, "ada", "sea")
			collection(t, newman, address, "rows", 323)
		})
	}
}

// missing skips a test whose tool is not installed, or fails it.
func missing(t *testing.T, reason string) {
	t.Helper()
	if os.Getenv("DUNLIN_REQUIRE_ALL") != "" {
		t.Fatal(reason)
	}
	t.Skip(reason)
}

// collection runs the collection as a new user.
func collection(t *testing.T, newman, address, user string, assertions int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	report := filepath.Join(t.TempDir(), "report.json")
	out, err := exec.CommandContext(ctx, newman, "run", "testdata/Conduit.postman_collection.json",
		"--global-var", "APIURL="+address, "--global-var", "USERNAME="+user, "--global-var", "EMAIL="+user+"@example.com",
		"--global-var", "PASSWORD=password", "--reporters", "cli,json", "--reporter-json-export", report).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", user, err, out)
	}
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Run struct {
			Stats struct{ Assertions struct{ Total, Failed int } }
		}
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if a := got.Run.Stats.Assertions; a.Total != assertions || a.Failed != 0 {
		t.Errorf("%s: got %d assertions, %d failed, want %d and none", user, a.Total, a.Failed, assertions)
	}
}

// service is the app on a database that is closed after the test.
func service(t *testing.T, config dunlin.Config, database string) (*dunlin.App, *conduit) {
	t.Helper()
	db, err := open(database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	config.Logger = slog.New(slog.DiscardHandler)
	c := &conduit{db: db, secret: []byte("secret"), log: config.Logger}
	return newApp(config, c), c
}
