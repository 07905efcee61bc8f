package middleware

import (
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/logqueue"
)

// AccessLog logs a line for each request to logger, at level Info; a nil logger
// stands for slog.Default() at the time of the call. The line says what the client got,
// whoever answered: see [dunlin.Request.OnAnswer]. Answers to what no middleware has
// seen, such as requests over a limit, are logged by [LogAnswers] only. The attributes:
//
//	method       as sent
//	path         as sent, without the query, which may hold secrets
//	route        the pattern that matched, "" for none: what to group by
//	status       of the answer
//	bytes        of the body that goes out; left out when it is not known (a stream)
//	source       what answered, if not the action: see [dunlin.AnswerSource]
//	duration_us  until the answer was ready, or for a stream until it had been sent, in microseconds
//	id           of the request
//	remote       the client's address, see [dunlin.Request.Remote]; "" where it has none (a unix socket)
//
// A request whose connection was dropped is logged as "request aborted", without status
// and bytes.
//
// [AccessLogConfig] has settings for what is logged.
func AccessLog(logger *slog.Logger) dunlin.Middleware {
	return AccessLogConfig{Logger: logger}.Middleware()
}

// AccessLogConfig says what lines an access log has. The zero value is that of [AccessLog].
type AccessLogConfig struct {
	// Logger gets the lines. Default: slog.Default() at the time of the call of Middleware or
	// Observer.
	Logger *slog.Logger

	// Level is that of a line. Default: Info.
	Level func(*dunlin.AnswerInfo) slog.Level

	// Skip leaves a line out, for health checks say. Default: none.
	Skip func(*dunlin.AnswerInfo) bool

	// Attrs returns the attributes of a line, given those of AccessLog: it may add to them, take some
	// away, or name them otherwise. The slice is its own until it returns. Default: they stay.
	Attrs func(info *dunlin.AnswerInfo, attrs []slog.Attr) []slog.Attr

	// Unit is the unit of the duration: time.Millisecond for "duration_ms" and time.Second for "duration_s", with a fraction,
	// time.Microsecond for "duration_us" and time.Nanosecond for "duration_ns", without one. Default: time.Microsecond, since
	// package slog allocates for a fraction in JSON.
	Unit time.Duration
}

// Middleware is [AccessLog] with these settings. It panics for a Unit that is none of those.
func (c AccessLogConfig) Middleware() dunlin.Middleware {
	log := c.Observer()
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
	return AccessLogConfig{Logger: logger}.Observer()
}

// units are what durations can be numbers of.
var units = map[time.Duration]string{
	time.Nanosecond: "duration_ns", time.Microsecond: "duration_us", time.Millisecond: "duration_ms", time.Second: "duration_s",
}

// Observer is [LogAnswers] with these settings. It panics for a Unit that is none of those.
func (c AccessLogConfig) Observer() func(*dunlin.AnswerInfo) {
	if c.Unit == 0 {
		c.Unit = time.Microsecond
	}
	logger, duration := c.Logger, units[c.Unit]
	if logger == nil {
		logger = slog.Default()
	}
	if duration == "" {
		panic(fmt.Sprintf("middleware: AccessLogConfig.Unit is %v: it must be a second, or a thousandth, millionth or billionth of one", c.Unit))
	}
	return func(info *dunlin.AnswerInfo) {
		if c.Skip != nil && c.Skip(info) {
			return
		}
		level := slog.LevelInfo
		if c.Level != nil {
			level = c.Level(info)
		}
		ctx := info.Context() // handlers may find a trace there
		if !logger.Enabled(ctx, level) {
			return
		}
		var room [9]slog.Attr // on the stack
		attrs := append(room[:0],
			slog.String("method", info.Method()),
			slog.String("path", logqueue.Short(info.SentPath())),
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
		took := slog.Int64(duration, int64(info.Duration()/c.Unit))
		if c.Unit >= time.Millisecond {
			took = slog.Float64(duration, float64(info.Duration())/float64(c.Unit))
		}
		attrs = append(attrs, took,
			slog.String("id", info.ID()),
			slog.String("remote", address(info.Remote())))
		if c.Attrs != nil {
			attrs = c.Attrs(info, append(make([]slog.Attr, 0, len(attrs)+4), attrs...)) // room stays on the stack
		}
		logger.LogAttrs(ctx, level, message, attrs...)
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
