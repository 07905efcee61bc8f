package typed

import (
	"fmt"
	"log/slog"
	"net/http"
	"sync"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/jsonwire"
	"github.com/dunlinhttp/dunlin/internal/logqueue"
	"github.com/dunlinhttp/dunlin/internal/schema"
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

	// MaxElements is how many members and elements the JSON of a body may have in all:
	// a few bytes of it can become a large struct. Default: 100,000.
	MaxElements int

	// IgnoreReadOnly reads members of a body whose fields have the tag readOnly:"true" as if they
	// were absent, so that clients may send back an answer. By default they are refused.
	IgnoreReadOnly bool

	// UnknownMembers says what becomes of members of a JSON body that the struct does not have:
	// they are refused, or read over. A struct may say otherwise in the tag of its blank field:
	// _ struct{} `additionalProperties:"true"`.
	UnknownMembers UnknownMembers

	// Logger gets the faults that no operation has declared. Default: the app's.
	Logger *slog.Logger
}

// UnknownMembers is what becomes of members that a struct does not have.
type UnknownMembers uint8

const (
	Reject UnknownMembers = iota // the request is refused
	Ignore                       // they are read over, within the limits of all JSON
)

// appState is what an app has of this package.
type appState struct {
	config Config
	log    *slog.Logger    // to config.Logger, which may block
	limits jsonwire.Limits // of bodies
	loose  jsonwire.Limits // of bodies that may have unknown members everywhere

	formFields int // dunlin.Config.MaxFormFields

	mu         sync.Mutex
	used       bool // operations are registered
	undeclared map[undeclaredKey]*Undeclared
}

const maxElements = 100_000 // Config.MaxElements of apps that are not configured

type stateKey struct{}

func stateOf(app *dunlin.App) *appState {
	return app.Extension(stateKey{}, func() any {
		logger := app.Config().Logger
		return &appState{
			config: Config{InvalidStatus: http.StatusBadRequest, Logger: logger}, log: logqueue.New(logger.Handler()).Patient(),
			limits: schema.DecoderLimits(maxElements, false), loose: schema.DecoderLimits(maxElements, true), formFields: app.Config().MaxFormFields, undeclared: map[undeclaredKey]*Undeclared{},
		}
	}).(*appState)
}

// Configure sets the settings of an app, before its first typed action is registered.
// It panics when a setting is not valid, or comes too late.
func Configure(app *dunlin.App, c Config) {
	switch c.InvalidStatus {
	case 0:
		c.InvalidStatus = http.StatusBadRequest
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
	default:
		panic(fmt.Sprintf("typed: Configure: InvalidStatus is %d: it must be 400 or 422", c.InvalidStatus))
	}
	switch {
	case c.MaxElements == 0:
		c.MaxElements = maxElements
	case c.MaxElements < 0:
		panic(fmt.Sprintf("typed: Configure: MaxElements is %d: it must not be negative", c.MaxElements))
	}
	if c.UnknownMembers > Ignore {
		panic(fmt.Sprintf("typed: Configure: UnknownMembers is %d: it must be Reject or Ignore", c.UnknownMembers))
	}
	if c.Logger == nil {
		c.Logger = app.Config().Logger
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
	s.limits, s.loose = schema.DecoderLimits(c.MaxElements, false), schema.DecoderLimits(c.MaxElements, true)
	s.config, s.log = c, logqueue.New(c.Logger.Handler()).Patient()
}
