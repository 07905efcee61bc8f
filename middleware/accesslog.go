package middleware

import (
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// AccessLog logs a line for each request to logger, at level Info; a nil logger
// stands for slog.Default() at the time of the call. The attributes:
//
//	method    as sent
//	path      as matched, without the query, which may hold secrets
//	route     the pattern that matched, "" for none: what to group by
//	status    of the response, also after 304 or an error made it another
//	bytes     of the body that goes out; left out when it is not known yet (a stream)
//	duration  of the action and the middleware after this one, not of sending
//	id        of the request
//	remote    the peer's address, "" where it has none (a unix socket)
//
// A request whose action panics is logged as "request aborted", without status
// and bytes: what the client gets is decided outside of middleware.
func AccessLog(logger *slog.Logger) dunlin.Middleware {
	if logger == nil {
		logger = slog.Default()
	}
	return func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) (resp dunlin.Response) {
			if !logger.Enabled(r.Context(), slog.LevelInfo) {
				return next(r)
			}
			start := time.Now()
			returned := false
			// Deferred for the sake of panics, which go on: they are the app's to answer.
			defer func() { logRequest(logger, r, resp, returned, time.Since(start)) }()
			resp = next(r)
			returned = true
			return resp
		}
	}
}

func logRequest(logger *slog.Logger, r *dunlin.Request, resp dunlin.Response, returned bool, took time.Duration) {
	var room [8]slog.Attr // on the stack
	attrs := append(room[:0],
		slog.String("method", r.Method()),
		slog.String("path", r.Path()),
		slog.String("route", r.Route()))
	message := "request aborted"
	if returned {
		message = "request"
		attrs = append(attrs, slog.Int("status", resp.StatusCode()))
		if n := sentBytes(r, resp); n >= 0 {
			attrs = append(attrs, slog.Int("bytes", n))
		}
	}
	attrs = append(attrs,
		slog.Duration("duration", took),
		slog.String("id", r.ID()),
		slog.String("remote", address(r.Remote())))
	logger.LogAttrs(r.Context(), slog.LevelInfo, message, attrs...)
}

func address(peer netip.AddrPort) string {
	if !peer.IsValid() {
		return ""
	}
	return peer.String()
}

// sentBytes returns how many bytes of body the client gets, -1 when that is not
// known: a response to HEAD, a 204 and a 304 keep a body that is not sent
// (RFC 9110 sections 9.3.2, 15.3.5 and 15.4.5).
func sentBytes(r *dunlin.Request, resp dunlin.Response) int {
	if r.Method() == http.MethodHead {
		return 0
	}
	switch resp.StatusCode() {
	case http.StatusNoContent, http.StatusNotModified:
		return 0
	}
	return resp.Len()
}
