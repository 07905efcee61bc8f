package htmx

import (
	"net/url"

	"github.com/dunlinhttp/dunlin"
)

// Is reports whether htmx sent the request.
func Is(r *dunlin.Request) bool { return r.Header("HX-Request") == "true" }

// Partial reports whether htmx inserts the response into a part of the page. It returns false for
// requests that need a whole page: those of the browser, of elements with hx-boost and of the history.
func Partial(r *dunlin.Request) bool { return Is(r) && !Boosted(r) && !HistoryRestore(r) }

// Boosted reports whether the request is from an element with hx-boost.
func Boosted(r *dunlin.Request) bool { return r.Header("HX-Boosted") == "true" }

// HistoryRestore reports whether htmx requests a page of the history that it has not cached.
func HistoryRestore(r *dunlin.Request) bool { return r.Header("HX-History-Restore-Request") == "true" }

// CurrentURL returns the URL of the page in the browser, or "" if the request does not contain it.
func CurrentURL(r *dunlin.Request) string { return value(r, "HX-Current-URL") }

// Prompt returns the text that the user has entered for hx-prompt.
func Prompt(r *dunlin.Request) string { return value(r, "HX-Prompt") }

// Target returns the ID of the target element, or "" if it has none.
func Target(r *dunlin.Request) string { return value(r, "HX-Target") }

// TriggerID returns the ID of the element that triggered the request, or "" if it has none.
func TriggerID(r *dunlin.Request) string { return value(r, "HX-Trigger") }

// TriggerName returns the name of the element that triggered the request, or "" if it has none.
func TriggerName(r *dunlin.Request) string { return value(r, "HX-Trigger-Name") }

// value returns the decoded value of a header. htmx encodes values that are not allowed in a header, and then sends a second header.
func value(r *dunlin.Request, name string) string {
	v := r.Header(name)
	if v != "" && r.Header(name+"-URI-AutoEncoded") == "true" {
		if decoded, err := url.PathUnescape(v); err == nil {
			return decoded
		}
	}
	return v
}
