package store

import (
	"context"
	"time"
)

// A Script is a computation on the number of a key. A store runs it atomically. It has two versions with the same
// result: one in Go, and one in Lua for remote stores. Integers are exact up to 2^53, the limit of Lua's numbers.
//
// A missing number is 0. The Go version gets:
//
//	now    the store's clock in microseconds since 1970, the same for all clients
//	state  the number
//	args   the arguments of the call
//
// The Lua version has local variables of the same names (a1 to a4 for args), and assigns to state, keep and result.
// keep is in microseconds.
type Script struct {
	Name string // used in errors

	// Go returns the next number, its time to live, and the result of Run. A number of 0, or with a time to live of 0,
	// is removed. KeepTTL leaves the time to live unchanged.
	Go func(now, state int64, args *Args) (next int64, keep time.Duration, result int64)

	Lua string
}

// Args are the arguments of a script.
type Args [4]int64

// KeepTTL, as the time to live returned by a script, leaves it unchanged.
const KeepTTL time.Duration = -1

// longestTTL replaces all longer times to live.
const longestTTL = 10 * 365 * 24 * time.Hour

// LuaBegin and LuaEnd surround the text of a script in stores that run Lua like Redis: KEYS[1] is the key of the
// number, ARGV[1] to ARGV[4] are the arguments.
const (
	LuaBegin = `local t = redis.call('TIME')
local now = tonumber(t[1]) * 1000000 + tonumber(t[2])
local state = tonumber(redis.call('GET', KEYS[1]) or '0')
local had = state
local a1, a2, a3, a4 = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local keep, result = -1, 0
`
	LuaEnd = `
if state == 0 or (keep >= 0 and keep < 1) or (keep < 0 and had == 0) then redis.call('DEL', KEYS[1])
elseif keep < 0 then redis.call('SET', KEYS[1], string.format('%.0f', state), 'KEEPTTL')
else redis.call('SET', KEYS[1], string.format('%.0f', state), 'PX', string.format('%.0f', math.min(math.ceil(keep / 1000), 315360000000))) end
return string.format('%.0f', result)
`
)

// add adds args[0] to the number. A new number lives for args[1] microseconds.
var add = &Script{
	Name: "add",
	Go: func(_, state int64, args *Args) (int64, time.Duration, int64) {
		next, keep := state+args[0], KeepTTL
		if state == 0 {
			keep = time.Duration(args[1]) * time.Microsecond
		}
		return next, keep, next
	},
	Lua: `if state == 0 then keep = a2 end
state = state + a1
result = state`,
}

// Increment adds n to the number of a key and returns the sum. The number is removed ttl after it changed from 0.
func Increment(ctx context.Context, s Store, key string, n int64, ttl time.Duration) (int64, error) {
	if err := Check(key, ttl); err != nil {
		return 0, err
	}
	return s.Run(ctx, key, add, Args{n, int64(min(ttl, longestTTL) / time.Microsecond)})
}
