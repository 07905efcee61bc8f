package middleware

import (
	"context"
	"log/slog"
	"net/netip"

	"github.com/dunlinhttp/dunlin"
)

// AccessLog logs a line for each request to logger, at level Info; a nil logger
// stands for slog.Default() at the time of the call. The line says what the client got,
// whoever answered: see [dunlin.Request.OnAnswer]. Answers to what no middleware has
// seen, such as requests over a limit, are logged by [LogAnswers] only. The attributes:
//
//	method    as sent
//	path      as matched, without the query, which may hold secrets
//	route     the pattern that matched, "" for none: what to group by
//	status    of the answer
//	bytes     of the body that goes out; left out when it is not known (a stream)
//	source    what answered, if not the action: see [dunlin.AnswerSource]
//	duration  until the answer was ready, or for a stream until it had been sent
//	id        of the request
//	remote    the client's address, see [dunlin.Request.Remote]; "" where it has none (a unix socket)
//
// A request whose connection was dropped is logged as "request aborted", without status
// and bytes.
func AccessLog(logger *slog.Logger) dunlin.Middleware {
	log := LogAnswers(logger)
	return func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			r.OnAnswer(log)
			return next(r)
		}
	}
}

// LogAnswers is AccessLog for every answer of an app, also those to requests that could
// not be read or were refused:
//
//	app.OnAnswer(middleware.LogAnswers(logger))
func LogAnswers(logger *slog.Logger) func(*dunlin.AnswerInfo) {
	if logger == nil {
		logger = slog.Default()
	}
	return func(info *dunlin.AnswerInfo) {
		ctx := context.Background()
		if !logger.Enabled(ctx, slog.LevelInfo) {
			return
		}
		var room [9]slog.Attr // on the stack
		attrs := append(room[:0],
			slog.String("method", info.Method()),
			slog.String("path", info.Path()),
			slog.String("route", info.Route()))
		message := "request"
		if info.Dropped() {
			message = "request aborted"
		} else {
			attrs = append(attrs, slog.Int("status", info.Status()))
			if n := info.Bytes(); n >= 0 {
				attrs = append(attrs, slog.Int64("bytes", n))
			}
		}
		if s := info.Source(); s != dunlin.FromAction {
			attrs = append(attrs, slog.String("source", s.String()))
		}
		attrs = append(attrs,
			slog.Duration("duration", info.Duration()),
			slog.String("id", info.ID()),
			slog.String("remote", address(info.Remote())))
		logger.LogAttrs(ctx, slog.LevelInfo, message, attrs...)
	}
}

func address(peer netip.AddrPort) string {
	if !peer.IsValid() {
		return ""
	}
	if peer.Port() == 0 { // a proxy has said no port
		return peer.Addr().String()
	}
	return peer.String()
}
