package typed

import (
	"fmt"
	"log/slog"
	"net/http"
	"sync"

	"github.com/dunlinhttp/dunlin"
)

// Config holds what the typed actions of an app have in common. Every zero field has
// a default.
type Config struct {
	// InvalidStatus answers every request that breaks a rule of its operation, be it in
	// a parameter or the body: 400 or 422. Default: 400, which is also what malformed
	// HTTP is answered with.
	InvalidStatus int

	// Message says what must be mended, in the client's language, say. "" leaves the
	// English text. It must be safe for concurrent use.
	Message func(r *dunlin.Request, v Violation) string

	// Transcode makes bodies of other media types JSON, by media type without
	// parameters: "application/cbor". The rules are then those of the JSON. A function
	// may keep neither argument; it appends to dst. An error is reported as one of the body.
	Transcode map[string]func(dst, body []byte) ([]byte, error)

	// Logger gets the faults that no operation has declared. Default: slog.Default().
	Logger *slog.Logger
}

// appState is what an app has of this package.
type appState struct {
	config Config

	mu         sync.Mutex
	used       bool // operations are registered
	undeclared map[undeclaredKey]*Undeclared
}

type stateKey struct{}

func stateOf(app *dunlin.App) *appState {
	return app.Extension(stateKey{}, func() any {
		return &appState{config: Config{InvalidStatus: http.StatusBadRequest}, undeclared: map[undeclaredKey]*Undeclared{}}
	}).(*appState)
}

// Configure sets the settings of an app, before its first typed action is registered.
// It panics when a setting cannot hold, or comes too late.
func Configure(app *dunlin.App, c Config) {
	switch c.InvalidStatus {
	case 0:
		c.InvalidStatus = http.StatusBadRequest
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
	default:
		panic(fmt.Sprintf("typed: Configure: InvalidStatus is %d: it must be 400 or 422", c.InvalidStatus))
	}
	for name, f := range c.Transcode {
		if f == nil || mediaType(name) != name || name == "" || isJSON(name) {
			panic(fmt.Sprintf("typed: Configure: Transcode has %q: it needs a media type other than JSON, in lower case and without parameters, and a function", name))
		}
	}
	s := stateOf(app)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used {
		panic("typed: Configure must come before the first typed action is registered")
	}
	s.config = c
}

func (s *appState) logger() *slog.Logger {
	if s.config.Logger != nil {
		return s.config.Logger
	}
	return slog.Default()
}
