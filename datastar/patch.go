package datastar

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/sse"
)

// A Patch is a change of the page: [Elements], [Signals] or a [Script].
type Patch interface {
	// Event returns the patch as an event. ctx is passed to the component of the patch, if it has one.
	Event(ctx context.Context) (dunlin.Event, error)
}

// These are the types of the events.
const (
	patchElements = "datastar-patch-elements"
	patchSignals  = "datastar-patch-signals"
)

// A Mode is the way in which elements are patched into the page. The zero Mode is ModeOuter.
type Mode string

// These are the modes. The target is the element that Elements.Selector selects.
const (
	ModeOuter   Mode = "outer"   // morphs the target
	ModeInner   Mode = "inner"   // morphs the content of the target
	ModeReplace Mode = "replace" // replaces the target
	ModePrepend Mode = "prepend" // inserts at the start of the target's content
	ModeAppend  Mode = "append"  // inserts at the end of the target's content
	ModeBefore  Mode = "before"  // inserts before the target
	ModeAfter   Mode = "after"   // inserts after the target
	ModeRemove  Mode = "remove"  // removes the target
)

// Elements patches HTML elements into the page. Each top-level element needs an ID, unless Selector
// is set.
type Elements struct {
	HTML      string           // complete elements; it is not escaped
	Component dunlin.Component // renders the elements, in place of HTML

	Selector  string // CSS selector of the target; "" selects the targets by the IDs of the elements
	Mode      Mode
	Namespace string // "svg" or "mathml"; "" is HTML

	ViewTransition         bool   // use the View Transition API
	ViewTransitionSelector string // CSS selector of the element with the transition; needs Datastar 1.0.2

	ID    string        // ID of the event
	Retry time.Duration // delay before the browser connects again; 0 does not change it
}

// RemoveElements returns the patch that removes the elements of a selector.
func RemoveElements(selector string) Elements { return Elements{Selector: selector, Mode: ModeRemove} }

// Event returns the patch as an event. It fails if the component fails, or if an option has a line
// break.
func (p Elements) Event(ctx context.Context) (dunlin.Event, error) {
	html := p.HTML
	if p.Component != nil {
		var b strings.Builder
		if err := p.Component.Render(ctx, &b); err != nil {
			return dunlin.Event{}, fmt.Errorf("datastar: render elements: %w", err)
		}
		html = b.String()
	}
	var d data
	d.option("selector", p.Selector)
	if p.Mode != ModeOuter {
		d.option("mode", string(p.Mode))
	}
	if p.Namespace != "html" {
		d.option("namespace", p.Namespace)
	}
	if p.ViewTransition {
		d.option("useViewTransition", "true")
	}
	d.option("viewTransitionSelector", p.ViewTransitionSelector)
	if html != "" {
		d.lines("elements", html)
	}
	return d.event(patchElements, p.ID, p.Retry)
}

// Signals patches signals by a JSON Merge Patch (RFC 7396): null removes a signal.
type Signals struct {
	Values        any  // encoded as JSON, which must be an object; use json.RawMessage for encoded JSON
	OnlyIfMissing bool // patch only signals that the page does not have

	ID    string        // ID of the event
	Retry time.Duration // delay before the browser connects again; 0 does not change it
}

var errNoObject = errors.New("datastar: signals are a JSON object")

// Event returns the patch as an event. It fails if the JSON of the values is not an object.
func (p Signals) Event(context.Context) (dunlin.Event, error) {
	values, err := json.Marshal(p.Values)
	switch {
	case err != nil:
		return dunlin.Event{}, fmt.Errorf("datastar: encode signals: %w", err)
	case values[0] != '{':
		return dunlin.Event{}, errNoObject
	}
	var d data
	if p.OnlyIfMissing {
		d.option("onlyIfMissing", "true")
	}
	d.lines("signals", string(values))
	return d.event(patchSignals, p.ID, p.Retry)
}

// A Script runs JavaScript on the page.
type Script struct {
	Code       string
	Attributes []string // complete attributes of the script element, such as `type="module"`; they are not escaped
	Keep       bool     // the script element stays on the page after it has run

	ID    string        // ID of the event
	Retry time.Duration // delay before the browser connects again; 0 does not change it
}

var errEndsScript = errors.New(`datastar: a script must not have the text "</script" or "<!--", which ends it or changes how it is read`)

// Event returns the script as an event. It fails if the code would end the script element.
func (p Script) Event(ctx context.Context) (dunlin.Event, error) {
	if lower := strings.ToLower(p.Code); strings.Contains(lower, "</script") || strings.Contains(lower, "<!--") {
		return dunlin.Event{}, errEndsScript
	}
	tag := "<script"
	if !p.Keep {
		tag += ` data-effect="el.remove()"`
	}
	for _, a := range p.Attributes {
		tag += " " + a
	}
	return Elements{HTML: tag + ">" + p.Code + "</script>", Selector: "body", Mode: ModeAppend, ID: p.ID, Retry: p.Retry}.Event(ctx)
}

// data is the data of an event: lines that begin with a keyword.
type data struct {
	b   []byte
	err error
}

// option appends a line, unless the value is empty.
func (d *data) option(name, value string) {
	switch {
	case value == "":
	case strings.ContainsAny(value, "\r\n"):
		d.err = fmt.Errorf("datastar: %s has a line break: %q", name, value)
	default:
		d.lines(name, value)
	}
}

// lines appends each line of a text with the keyword before it.
func (d *data) lines(name, text string) { d.b = sse.AppendLines(d.b, name+" ", text) }

func (d *data) event(kind, id string, retry time.Duration) (dunlin.Event, error) {
	return dunlin.Event{Type: kind, ID: id, Retry: retry, Data: strings.TrimSuffix(string(d.b), "\n")}, d.err
}
