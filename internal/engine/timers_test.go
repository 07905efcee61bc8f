//go:build linux

package engine

import (
	"math/rand/v2"
	"testing"
)

// TestTimerWheel compares the wheel with its rule: a connection is checked at its deadline, never later. Earlier checks are
// made only at the horizon, or at the tick of an earlier deadline.
func TestTimerWheel(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 0))
		l := &loop{}
		now := uint32(1 + rng.IntN(5000))
		l.wheel.init(now)
		for i := range 50 {
			l.conns = append(l.conns, &Conn{slot: int32(i)})
		}
		for range 3000 {
			c := l.conns[rng.IntN(len(l.conns))]
			switch rng.IntN(4) {
			case 0:
				c.deadline = now + 1 + uint32(rng.IntN(20))
			case 1:
				c.deadline = now + 1 + uint32(rng.IntN(5*wheelSlots))
			case 2:
				c.deadline = 0
			case 3:
				l.unfile(c) // as for a closed connection
				c.deadline = 0
			}
			l.refileIfEarlier(c)
			now += uint32(rng.IntN(1 + rng.IntN(60)))
			if rng.IntN(200) == 0 {
				now += 3 * wheelSlots
			}
			for c := l.expired(now); c != nil; c = l.expired(now) {
				switch due := c.due(); {
				case due > now:
					l.refile(c, due)
				case due != 0:
					c.deadline = 0
				}
			}
			filed := 0
			for _, c := range l.conns {
				if c.filed != 0 {
					filed++
				}
				if c.deadline != 0 && c.deadline <= now {
					t.Fatalf("seed %d: at tick %d the deadline %d has not been looked at", seed, now, c.deadline)
				}
				if c.deadline != 0 && (c.filed == 0 || c.filed > c.deadline) {
					t.Fatalf("seed %d: deadline %d is filed under %d", seed, c.deadline, c.filed)
				}
				if c.filed != 0 && (l.wheel.next == 0 || l.wheel.next > c.filed) {
					t.Fatalf("seed %d: the wheel sleeps until %d, past %d", seed, l.wheel.next, c.filed)
				}
			}
			if filed != l.wheel.count {
				t.Fatalf("seed %d: got %d filed, the wheel counts %d", seed, filed, l.wheel.count)
			}
		}
	}
}

// TestConnSize checks that an idle connection is little more than a struct of two cache lines.
func TestConnSize(t *testing.T) {
	if size := connSize; size > 128 {
		t.Errorf("a Conn has %d bytes, want at most 128", size)
	}
}
