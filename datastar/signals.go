package datastar

import (
	"encoding/json"
	"net/http"

	"github.com/dunlinhttp/dunlin"
)

// Is reports whether Datastar sent the request.
func Is(r *dunlin.Request) bool { return r.Header("Datastar-Request") == "true" }

// ReadSignals decodes the signals of a request into the value that v points to. GET, HEAD and DELETE requests have the signals
// in the query parameter datastar, other requests in the body. Without signals the value is unchanged. The error for invalid
// JSON is a problem with the status 400. Other errors are those of [dunlin.Request.Bytes].
func ReadSignals(r *dunlin.Request, v any) error {
	var signals []byte
	switch r.Method() {
	case http.MethodGet, http.MethodHead, http.MethodDelete:
		signals = []byte(r.Query("datastar"))
	default:
		body, err := r.Bytes()
		if err != nil {
			return err
		}
		signals = body
	}
	if len(signals) == 0 {
		return nil
	}
	if err := json.Unmarshal(signals, v); err != nil {
		return &dunlin.ProblemDetails{Status: http.StatusBadRequest, Detail: "the signals are not valid JSON of the expected types", Cause: err}
	}
	return nil
}
