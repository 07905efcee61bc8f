package htmx

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dunlinhttp/dunlin"
)

// StopPolling is the status of a response that ends the polling of hx-trigger="every …".
const StopPolling = 286

var refresh = dunlin.NewHeaderBlock("HX-Refresh", "true")

// Redirect returns the response that makes the browser load another page. Its status is 200, because a
// browser follows a redirect (3xx) before htmx sees it.
func Redirect(url string) dunlin.Response { return dunlin.Empty().Header("HX-Redirect", url) }

// Refresh returns the response that makes the browser reload the page.
func Refresh() dunlin.Response { return dunlin.Empty().With(refresh) }

// A Location is a page that htmx loads, as after a click on a link with hx-boost.
type Location struct {
	Path    string            `json:"path"`
	Source  string            `json:"source,omitempty"`  // selector of the element that sends the request
	Event   string            `json:"event,omitempty"`   // event that triggers the request
	Handler string            `json:"handler,omitempty"` // function that handles the response
	Target  string            `json:"target,omitempty"`  // selector of the element that receives the response
	Swap    string            `json:"swap,omitempty"`    // in the form of [Reswap]
	Values  map[string]any    `json:"values,omitempty"`  // values to send
	Headers map[string]string `json:"headers,omitempty"` // headers to send
	Select  string            `json:"select,omitempty"`  // selector of the part of the response to use
}

// Response returns the response that makes htmx load the page.
func (l Location) Response() dunlin.Response {
	text, err := ascii(l)
	if err != nil {
		return dunlin.Error(fmt.Errorf("htmx: location: %w", err))
	}
	return dunlin.Empty().Header("HX-Location", text)
}

// PushURL returns the response with a header that makes htmx add url to the browser's history. The url
// "false" prevents a new entry.
func PushURL(resp dunlin.Response, url string) dunlin.Response {
	return resp.Header("HX-Push-Url", url)
}

// ReplaceURL returns the response with a header that makes htmx replace the URL in the location bar by
// url. The url "false" prevents this.
func ReplaceURL(resp dunlin.Response, url string) dunlin.Response {
	return resp.Header("HX-Replace-Url", url)
}

// Reswap returns the response with a header that selects how htmx inserts it into the page. swap has
// the form of the attribute hx-swap, such as "outerHTML" or "beforeend", with or without modifiers.
func Reswap(resp dunlin.Response, swap string) dunlin.Response { return resp.Header("HX-Reswap", swap) }

// Retarget returns the response with a header that selects the element into which htmx inserts it.
func Retarget(resp dunlin.Response, selector string) dunlin.Response {
	return resp.Header("HX-Retarget", selector)
}

// Reselect returns the response with a header that selects the part of it that htmx uses.
func Reselect(resp dunlin.Response, selector string) dunlin.Response {
	return resp.Header("HX-Reselect", selector)
}

// An Event is an event that htmx triggers on the page.
type Event struct {
	Name   string
	Detail any // detail of the event, which is encoded as JSON; nil for none
}

// Trigger returns the response with events that htmx triggers when it has received the response. The
// events replace those of an earlier call. An event that cannot be encoded makes the response a 500.
func Trigger(resp dunlin.Response, events ...Event) dunlin.Response {
	return trigger(resp, "HX-Trigger", events)
}

// TriggerAfterSwap is like Trigger, but htmx triggers the events after it has inserted the content.
func TriggerAfterSwap(resp dunlin.Response, events ...Event) dunlin.Response {
	return trigger(resp, "HX-Trigger-After-Swap", events)
}

// TriggerAfterSettle is like Trigger, but htmx triggers the events after the new content has settled.
func TriggerAfterSettle(resp dunlin.Response, events ...Event) dunlin.Response {
	return trigger(resp, "HX-Trigger-After-Settle", events)
}

func trigger(resp dunlin.Response, header string, events []Event) dunlin.Response {
	if len(events) == 0 {
		return resp
	}
	if len(events) == 1 && events[0].Detail == nil && plain(events[0].Name) {
		return resp.Header(header, events[0].Name)
	}
	b := []byte{'{'}
	for i, e := range events {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := ascii(e.Name)
		if err != nil {
			return dunlin.Error(fmt.Errorf("htmx: event %d: %w", i, err))
		}
		detail, err := ascii(e.Detail)
		if err != nil {
			return dunlin.Error(fmt.Errorf("htmx: event %s: %w", e.Name, err))
		}
		b = append(append(append(b, name...), ':'), detail...)
	}
	return resp.Header(header, string(append(b, '}')))
}

// plain reports whether an event can be sent by its name alone, without JSON. htmx splits the header at commas, and
// parses a header that begins with a brace as JSON.
func plain(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c >= 0x7f || c == ',' || c == '{' })
}

// ascii returns the JSON of v in ASCII, because browsers read headers as ISO 8859-1.
func ascii(v any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for len(b) > 0 {
		c, n := utf8.DecodeRune(b)
		switch b = b[n:]; {
		case c < 0x7f:
			text.WriteByte(byte(c))
		case c > 0xffff:
			c -= 0x10000
			fmt.Fprintf(&text, `\u%04x\u%04x`, 0xd800+c>>10, 0xdc00+c&0x3ff)
		default:
			fmt.Fprintf(&text, `\u%04x`, c)
		}
	}
	return text.String(), nil
}

var vary = dunlin.NewHeaderBlock("Vary", "HX-Request")

// Vary returns the response with Vary: HX-Request, for a URL whose response to htmx differs from that to other clients.
func Vary(resp dunlin.Response) dunlin.Response {
	if resp.Get("Vary") == "" {
		return resp.With(vary)
	}
	return resp.AddHeader("Vary", "HX-Request")
}
