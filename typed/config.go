package typed

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/ext"
	"github.com/dunlinhttp/dunlin/internal/jsonwire"
	"github.com/dunlinhttp/dunlin/internal/logqueue"
	"github.com/dunlinhttp/dunlin/internal/schema"
	"github.com/dunlinhttp/dunlin/negotiate"
)

// Config has the settings that all typed actions of an app share. Each zero field selects a default.
type Config struct {
	// InvalidStatus is the status of the answer to a request that violates a rule of its operation, in a parameter or in the
	// body. It must be 400 or 422. The default is 400, which is also the status for malformed HTTP. A [File] that is too
	// large is answered with 413, and a File of a wrong type with 415.
	InvalidStatus int

	// Message returns a text that tells the client how to correct a violation, for example in the client's language. If the
	// result is empty, the English text is used. Message must be safe for concurrent use.
	Message func(r *dunlin.Request, v Violation) string

	// Transcode has functions that convert request bodies of other media types to JSON. The keys are media types without
	// parameters, such as "application/cbor". The rules are then checked in the JSON. A function appends to dst, and must
	// retain neither argument. If it returns an error, the body has a violation of the rule "syntax". The functions must be
	// safe for concurrent use.
	Transcode map[string]func(dst, body []byte) ([]byte, error)

	// Formats are the formats of answers in addition to JSON, such as negotiate.XML. The client chooses a format by Accept.
	// Without a preference it gets JSON. A client that accepts none of the formats gets 406 before the action runs. Problems
	// are always JSON.
	//
	// An operation offers the formats that can encode its output. Only JSON is offered for streams, for outputs with
	// write-only members, and for types that only JSON encodes as intended: Optional, Nullable, interfaces, and types with
	// MarshalJSON but without MarshalText. The names of members follow the rules of the format.
	Formats []*negotiate.Format

	// MaxElements is the maximum total number of members and elements in the JSON of a body. It limits memory, because a few
	// bytes of JSON can become a large struct. The default is 100,000.
	MaxElements int

	// IgnoreReadOnly treats members of a body whose fields have the tag readOnly:"true" as absent, so that a client can send
	// an answer back. By default, a request with such members is refused.
	IgnoreReadOnly bool

	// UnknownMembers selects whether members of a JSON body for which the struct has no field are refused or ignored. The
	// tag of a blank field overrides it for one struct: _ struct{} `additionalProperties:"true"`.
	UnknownMembers UnknownMembers

	// Logger logs the faults that operations return without a declaration. The default is the logger of the app.
	Logger *slog.Logger
}

// UnknownMembers selects the treatment of members of a body for which a struct has no field.
type UnknownMembers uint8

const (
	UnknownMembersReject UnknownMembers = iota // the request is refused
	UnknownMembersIgnore                       // the members are ignored, but count toward the limits on JSON
)

// appState is the state of this package for one app.
type appState struct {
	config Config
	log    *slog.Logger    // writes to config.Logger, which may block
	limits jsonwire.Limits // for bodies whose unknown members are refused
	loose  jsonwire.Limits // for bodies in which all structs may have unknown members

	formFields int // dunlin.Config.Limits.MaxFormFields

	mu         sync.Mutex
	used       bool // an operation is registered
	undeclared map[undeclaredKey]*Undeclared
}

const maxElements = 100_000 // default of Config.MaxElements

type stateKey struct{}

func stateOf(app *dunlin.App) *appState {
	return ext.PerApp(app, stateKey{}, func() *appState {
		logger := app.Config().Logger
		return &appState{
			config: Config{InvalidStatus: http.StatusBadRequest, Logger: logger}, log: logqueue.New(logger.Handler()).Patient(),
			limits: schema.DecoderLimits(maxElements, false), loose: schema.DecoderLimits(maxElements, true), formFields: app.Config().Limits.MaxFormFields, undeclared: map[undeclaredKey]*Undeclared{},
		}
	})
}

// Configure sets the settings of an app. Call it before the first typed action is registered. It panics if a setting is not
// valid, or if a typed action is already registered.
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
	if c.UnknownMembers > UnknownMembersIgnore {
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
	if len(c.Formats) > 0 {
		negotiate.New(slices.Concat([]*negotiate.Format{negotiate.JSON}, c.Formats)...) // panics if a format is not valid
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
