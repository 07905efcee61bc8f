//go:build linux

package engine

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

// Connections may be closed for waiting clients if they were idle for a second, or are new and have sent nothing for an eighth
// of a second, or were idle for that long and belong to an address with more than half of the connections.
func TestIdleConnectionsEligibleForEviction(t *testing.T) {
	const open = time.Minute
	now := int64(10 * time.Hour)
	l := &loop{e: &Engine{cfg: Config{OpenTimeout: open}}, now: now}
	conn := func(address string, ago time.Duration, notes Note) *Conn {
		c := &Conn{loop: l, Notes: notes, deadline: deadlineTick(now-int64(ago), open)}
		c.peer.ip = netip.MustParseAddr(address).As16()
		c.state.Store(atLoop)
		l.conns = append(l.conns, c)
		l.count.Add(1)
		return c
	}
	old := conn("192.0.2.1", 2*time.Second, Begun)
	silent := conn("192.0.2.2", 300*time.Millisecond, 0)
	conn("192.0.2.3", 0, 0)                        // fresh
	conn("192.0.2.4", 300*time.Millisecond, Begun) // used recently
	want := func(what string, got []*Conn, want ...*Conn) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %d connections, not %d", what, len(got), len(want))
		}
	}
	want("idle", l.idleConns(false), old, silent)
	want("without a majority", l.recentConns(silentTicks))
	var many []*Conn
	for range 5 {
		many = append(many, conn("192.0.2.5", 300*time.Millisecond, Begun))
	}
	most := conn("192.0.2.5", 0, Begun)
	want("of the majority", l.recentConns(silentTicks), many...)
	want("of the majority, if the pause lasts", l.recentConns(0), append(many, most)...)
	want("idle beside the majority", l.idleConns(false), old, silent)
}
