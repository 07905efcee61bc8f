package webhook

import (
	"context"
	"errors"
	"net/http"

	"github.com/dunlinhttp/dunlin"
)

// Middleware returns middleware that passes on only verified webhooks. It reads the whole body, up to
// Route.MaxBody. It must get the body as sent, so put it before middleware.Decompress. It answers
//
//	204  the action has run before for this webhook, and answered 2xx
//	400  headers are missing or malformed
//	403  the timestamp is too far from the clock, or no signature is by a known key
//	409  another request with this ID is running; the sender should repeat the webhook later
//	503  the store is unavailable
//
// With a store, the ID of a webhook is remembered when its action has answered 2xx. If the answer is a
// stream or a file, the ID is remembered when the answer has been sent without an error. After another
// answer or a panic, a repetition runs the action again. A repetition also runs it again if the process
// has ended while the action was running, or if the store has failed after it.
func (v *Verifier) Middleware() dunlin.Middleware {
	return func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			if err := v.Check(r); err != nil {
				return dunlin.Error(err)
			}
			if v.config.Store == nil {
				return next(r)
			}
			c, err := v.claim(r.Context(), r.Header(HeaderID))
			switch {
			case errors.Is(err, errDone):
				return dunlin.NoContent()
			case errors.Is(err, errRunning):
				return dunlin.Problem(&dunlin.ProblemDetails{Status: http.StatusConflict, Detail: "a webhook with this ID is running", Cause: err})
			case err != nil:
				return dunlin.Problem(&dunlin.ProblemDetails{
					Status: http.StatusServiceUnavailable, Detail: "webhooks cannot be received at the moment", Cause: err, Temporary: true})
			}
			ok, later := false, false
			ctx := context.WithoutCancel(r.Context()) // the outcome is stored even if the sender has disconnected
			defer func() {
				if !later {
					c.finish(ctx, ok)
				}
			}()
			resp := next(r)
			if ok = resp.StatusCode() < 300; ok && resp.Len() < 0 { // a stream or file can fail when it is sent
				r.OnAnswer(func(info *dunlin.AnswerInfo) { c.finish(info.Context(), info.Status()/100 == 2 && info.Err() == nil) })
				later = true
			}
			return resp
		}
	}
}

// Check verifies the signature of a request. The error is an error of reading the body, or a problem with the status 400
// or 403 that wraps an error of [Verifier.Verify]. Check does not use the store.
func (v *Verifier) Check(r *dunlin.Request) error {
	body, err := r.Bytes()
	if err != nil {
		return err
	}
	err = v.Verify(r.Header(HeaderID), r.Header(HeaderTimestamp), r.Header(HeaderSignature), body)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrMalformed):
		return &dunlin.ProblemDetails{Status: http.StatusBadRequest, Detail: "the headers webhook-id, webhook-timestamp and webhook-signature are missing or malformed", Cause: err}
	case errors.Is(err, ErrExpired):
		return &dunlin.ProblemDetails{Status: http.StatusForbidden, Detail: "webhook-timestamp is too far from the clock of the server", Cause: err}
	}
	return &dunlin.ProblemDetails{Status: http.StatusForbidden, Detail: "webhook-signature has no signature by a known key", Cause: err}
}
