package htmx

import (
	"net/url"

	"github.com/dunlinhttp/dunlin"
)

// Is reports whether htmx sent the request.
func Is(r *dunlin.Request) bool { return r.Header("HX-Request") == "true" }

// Partial reports whether htmx puts the response into a part of the page. It is false for requests
// of the browser, of links with hx-boost and of the history, which need a whole page.
func Partial(r *dunlin.Request) bool { return Is(r) && !Boosted(r) && !HistoryRestore(r) }

// Boosted reports whether the request is from an element with hx-boost.
func Boosted(r *dunlin.Request) bool { return r.Header("HX-Boosted") == "true" }

// HistoryRestore reports whether htmx asks for a page of the history that it has not cached.
func HistoryRestore(r *dunlin.Request) bool { return r.Header("HX-History-Restore-Request") == "true" }

// CurrentURL returns the URL that the browser shows, "" if the request does not tell it.
func CurrentURL(r *dunlin.Request) string { return value(r, "HX-Current-URL") }

// Prompt returns the answer of the user to hx-prompt.
func Prompt(r *dunlin.Request) string { return value(r, "HX-Prompt") }

// Target returns the ID of the target element, "" if it has none.
func Target(r *dunlin.Request) string { return value(r, "HX-Target") }

// TriggerID returns the ID of the element that triggered the request, "" if it has none.
func TriggerID(r *dunlin.Request) string { return value(r, "HX-Trigger") }

// TriggerName returns the name of the element that triggered the request, "" if it has none.
func TriggerName(r *dunlin.Request) string { return value(r, "HX-Trigger-Name") }

// value returns a header. htmx encodes values that are not allowed in a header, and marks them with a second header.
func value(r *dunlin.Request, name string) string {
	v := r.Header(name)
	if v != "" && r.Header(name+"-URI-AutoEncoded") == "true" {
		if decoded, err := url.PathUnescape(v); err == nil {
			return decoded
		}
	}
	return v
}
