package openapi_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/openapi"
)

// Said is a message of a chat.
type Said struct {
	Text string `json:"text" minLength:"1" maxLength:"200"`
}

// Heard is a message in a room.
type Heard struct {
	From *Guest `json:"from"`
	Said Said   `json:"said"`
}

// Guest is a member of a room.
type Guest struct {
	Name string `json:"name"`
}

func asyncApp() (*dunlin.App, openapi.Config, []openapi.Channel) {
	app := dunlin.New(dunlin.Config{})
	app.Get("/rooms/{room}", func(*dunlin.Request) dunlin.Response { return dunlin.NoContent() })
	app.Get("/feeds/{id:int}", func(*dunlin.Request) dunlin.Response { return dunlin.NoContent() })
	config := openapi.Config{Title: "Chat", Version: "2", Servers: []openapi.Server{{URL: "https://chat.example/v2/"}}}
	return app, config, []openapi.Channel{
		{Route: "/rooms/{room}", Summary: "A room", In: []openapi.Message{openapi.MessageOf[Said]("A guest speaks")},
			Out: []openapi.Message{openapi.MessageOf[Heard]("A guest has spoken"), openapi.MessageOf[Guest]("A guest has come")}},
		{Route: "/feeds/{id:int}", Out: []openapi.Message{openapi.MessageOf[Guest]("A guest has come")}},
		{Topic: "members/{room}", Out: []openapi.Message{openapi.MessageOf[Guest]("A guest has come")}},
	}
}

func TestAsyncDocument(t *testing.T) {
	app, config, channels := asyncApp()
	got, err := openapi.AsyncDocument(app, config, channels...)
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "asyncapi.json")
	if os.Getenv("DUNLIN_UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the document has changed; with DUNLIN_UPDATE_GOLDEN=1 the test writes it:\n%s", got)
	}
	if !json.Valid(got) {
		t.Error("the document is not JSON")
	}
}

func TestInvalidChannels(t *testing.T) {
	app, config, channels := asyncApp()
	for want, ch := range map[string]openapi.Channel{
		"/none is not a registered GET route":             {Route: "/none"},
		"a channel needs either a route or a topic":       {},
		"two channels are called":                         channels[0],
		"string is not a named struct":                    {Topic: "x", Out: []openapi.Message{openapi.MessageOf[string]("")}},
		"struct { A int } is not a named struct":          {Topic: "x", Out: []openapi.Message{openapi.MessageOf[struct{ A int }]("")}},
		"a channel needs either a route or a topic: both": {Route: "/rooms/{room}", Topic: "x"},
	} {
		want, _, _ = strings.Cut(want, ": both")
		if _, err := openapi.AsyncDocument(app, config, append(channels, ch)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got error %v, want %q", ch, err, want)
		}
	}
	config.Servers = []openapi.Server{{URL: "/"}}
	if _, err := openapi.AsyncDocument(app, config); err == nil {
		t.Error("a server without a host is accepted")
	}
}

// The official parser accepts the document. DUNLIN_ASYNCAPI names a folder in which "npm install @asyncapi/parser" was run.
func TestAsyncParser(t *testing.T) {
	folder := os.Getenv("DUNLIN_ASYNCAPI")
	if folder == "" {
		t.Skip("DUNLIN_ASYNCAPI does not name a folder with the npm package @asyncapi/parser; .ci/openapi installs it")
	}
	const script = `
const { Parser } = require('@asyncapi/parser')
new Parser().parse(require('fs').readFileSync(0, 'utf8')).then(({ document, diagnostics }) => {
  const bad = diagnostics.filter(d => d.severity <= 1)
  for (const d of bad) console.error(d.path.join('.'), d.message)
  process.exit(document && bad.length === 0 ? 0 : 1)
})`
	app, config, channels := asyncApp()
	doc, err := openapi.AsyncDocument(app, config, channels...)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", "-e", script)
	cmd.Dir, cmd.Stdin = folder, bytes.NewReader(doc)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("the parser refuses the document: %v\n%s\n%s", err, out, doc)
	}
}
