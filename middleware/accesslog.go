package middleware

import (
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/logqueue"
	"github.com/dunlinhttp/dunlin/observe"
)

// AccessLog logs a line for each answer, at level Info by default. The line describes the answer that the client received,
// regardless of its origin. Refused and unreadable requests are logged, too.
//
//	app.Install(middleware.AccessLog(middleware.AccessLogConfig{Logger: logger}))
//
// The attributes:
//
//	method       as sent
//	path         as sent, without the query, which may contain secrets
//	route        the pattern that matched, "" for none; use it to group lines
//	status       of the response
//	bytes        the length of the sent body; omitted if it is unknown (a stream)
//	source       the part that answered, if not the action: see [observe.Source]
//	duration_ms  the time until the response was ready, or for a stream until it was sent, in milliseconds, to the microsecond
//	id           of the request
//	remote       the client's address, see [dunlin.Request.Remote]; "" for a client on a unix socket
//
// A request whose connection was dropped is logged as "request aborted", without status and bytes.
//
// AccessLog panics for an invalid Unit.
func AccessLog(c AccessLogConfig) dunlin.Feature {
	return dunlin.Hooks{Observe: c.observer()}
}

// AccessLogConfig has the settings of an [AccessLog].
type AccessLogConfig struct {
	// Logger logs the lines. Default: slog.Default() at the time of the call of AccessLog.
	Logger *slog.Logger

	// Level returns the level of a line. Default: Info.
	Level func(*dunlin.AnswerInfo) slog.Level

	// Skip reports whether to omit a line, for example of a health check. Default: no line is
	// omitted.
	Skip func(*dunlin.AnswerInfo) bool

	// Attrs returns the attributes of a line. attrs are the attributes listed at AccessLog. Attrs may
	// change this slice, and return it or another one, but must not keep it. Default: the attributes
	// are not changed.
	Attrs func(info *dunlin.AnswerInfo, attrs []slog.Attr) []slog.Attr

	// Unit is the unit of the duration. time.Millisecond selects "duration_ms", and time.Second
	// "duration_s", with a fraction down to the microsecond. time.Microsecond selects "duration_us",
	// and time.Nanosecond "duration_ns", without a fraction. The JSON handler of package slog allocates
	// 8 bytes for a fraction. Default: time.Millisecond.
	Unit time.Duration
}

// units has the attribute names of the duration.
var units = map[time.Duration]string{
	time.Nanosecond: "duration_ns", time.Microsecond: "duration_us", time.Millisecond: "duration_ms", time.Second: "duration_s",
}

// observer returns the function that logs an answer.
func (c AccessLogConfig) observer() func(*dunlin.AnswerInfo) {
	if c.Unit == 0 {
		c.Unit = time.Millisecond
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
		ctx := info.Context() // log handlers may find a trace in it
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
		if s := info.Source(); s != observe.SourceAction {
			attrs = append(attrs, slog.String("source", s.String()))
		}
		took := slog.Int64(duration, int64(info.Duration()/c.Unit))
		if c.Unit >= time.Millisecond {
			took = slog.Float64(duration, float64(info.Duration().Microseconds())/float64(c.Unit.Microseconds()))
		}
		attrs = append(attrs, took,
			slog.String("id", info.ID()),
			slog.String("remote", address(info.Remote())))
		if c.Attrs != nil {
			attrs = c.Attrs(info, append(make([]slog.Attr, 0, len(attrs)+4), attrs...)) // a copy, so that room stays on the stack
		}
		logger.LogAttrs(ctx, level, message, attrs...)
	}
}

func address(peer netip.AddrPort) string {
	if !peer.IsValid() {
		return ""
	}
	if peer.Port() == 0 { // a proxy sent no port
		return peer.Addr().String()
	}
	return peer.String()
}
