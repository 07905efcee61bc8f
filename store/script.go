package store

import (
	"context"
	"time"
)

// A Script is a computation on the number of one key, which a store carries out as one
// step. It is written twice, once in Go and once in Lua, for stores that live
// elsewhere; both must do the same. Integers stay exact up to 2^53, in Lua's numbers.
//
// The number is 0 where there is none. In Go:
//
//	now    microseconds since 1970 by the store's clock, the same for all its clients
//	state  the number
//	args   of the call
//
// and in Lua the locals of the same names (a1 to a4 for args), to which the text assigns: state, keep and
// result, where keep is in microseconds.
type Script struct {
	Name string // for errors

	// Go returns the number that is to be, how long it is kept, and what Run returns. A
	// number that is 0, or is kept for no time, is removed; KeepTTL leaves the time it has as it is.
	Go func(now, state int64, args *Args) (next int64, keep time.Duration, result int64)

	Lua string
}

// Args are a script's arguments.
type Args [4]int64

// KeepTTL, as a script's time, leaves it as it is.
const KeepTTL time.Duration = -1

// longestTTL stands for all times beyond it.
const longestTTL = 10 * 365 * 24 * time.Hour

// LuaBegin and LuaEnd are what a store with Lua puts around the text of a script, which
// is the same for all of Redis's kind: KEYS[1] is the number's key and ARGV[1] to ARGV[4] are the arguments.
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

// add adds args[0] to the number; one that begins lives for args[1] microseconds.
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

// Increment adds n to the number of a key and returns the sum. The number is forgotten ttl after
// it has become other than 0.
func Increment(ctx context.Context, s Store, key string, n int64, ttl time.Duration) (int64, error) {
	if err := Check(key, ttl); err != nil {
		return 0, err
	}
	return s.Run(ctx, key, add, Args{n, int64(min(ttl, longestTTL) / time.Microsecond)})
}
