package exchange

import (
	"testing"
	"time"
)

func TestBlockingStatLearnsAndForgets(t *testing.T) {
	var p BlockingStat
	now := int64(time.Hour)
	for range blockingScore / waitPenalty {
		if p.Blocking(now) {
			t.Fatal("called blocking too early")
		}
		p.Waited(now)
	}
	if !p.Blocking(now) {
		t.Fatal("taken over every time, and not called blocking")
	}
	now += firstWait
	if p.Blocking(now) {
		t.Fatal("no trial when it was due")
	}
	if !p.Blocking(now) {
		t.Fatal("two trials at once")
	}
	p.Returned(now)
	for i := 0; p.score.Load() >= blockingScore; i++ {
		if i > 5 || p.Blocking(now) {
			t.Fatal("good trials do not follow one another at once")
		}
		p.Returned(now)
	}
	if p.Blocking(now) {
		t.Error("still called blocking after trials that went well")
	}
}

func TestBlockingStatTrialsBecomeRare(t *testing.T) {
	var p BlockingStat
	for range 2 * blockingScore / waitPenalty {
		p.Waited(0)
	}
	trials := 0
	for now := int64(0); now < int64(time.Minute); now += int64(time.Millisecond) {
		if !p.Blocking(now) {
			trials++
			p.Waited(now)
		}
	}
	// The trials are after 50 ms, then 100, 200 and so on, up to every ten seconds.
	if trials < 8 || trials > 14 {
		t.Errorf("%d trials in a minute", trials)
	}
}

// Brief waits, which block a loop without a takeover, are learned like takeovers, and a trial that waits has failed.
func TestBlockingStatLearnsBriefWaits(t *testing.T) {
	for _, test := range []struct {
		name   string
		waits  func(call int) bool
		learns bool
	}{
		{"always", func(int) bool { return true }, true},
		{"every other call", func(call int) bool { return call%2 == 0 }, true},
		{"every third call", func(call int) bool { return call%3 == 0 }, true},
		{"after calls that computed", func(call int) bool { return call > 50 }, true},
		{"every twentieth call", func(call int) bool { return call%20 == 0 }, false},
		{"never", func(int) bool { return false }, false},
	} {
		var p BlockingStat
		for call := range 100 {
			p.Stayed(test.waits(call), 0)
		}
		if p.Learned() != test.learns {
			t.Errorf("%s: learned is %v", test.name, p.Learned())
		}
		for call := range 100 {
			if now := int64(call) * maxWait; !p.Blocking(now) {
				p.Stayed(test.waits(100+call), now)
			}
		}
		if test.name == "always" && !p.Learned() {
			t.Error("forgotten by trials that waited")
		}
	}
}

func TestBlockingStatOfRareTakeovers(t *testing.T) {
	var p BlockingStat
	for range 10_000 {
		p.Waited(0)
		for range 2 * waitPenalty {
			p.Returned(0)
		}
		if p.Blocking(0) {
			t.Fatal("called blocking for one takeover in many calls")
		}
	}
}

// On a busy machine, fast calls are taken over occasionally: that does not mark the route as blocking.
func TestBlockingStatOfFastRoutes(t *testing.T) {
	var p BlockingStat
	p.Waited(0)
	if !p.Seen() {
		t.Error("not seen that the first call has blocked")
	}
	for range 100 {
		p.Returned(0)
	}
	for range 4 {
		if p.Waited(0); p.Seen() {
			t.Fatal("called blocking by what a busy machine does to quick calls")
		}
	}
	p.Waited(0)
	if !p.Seen() {
		t.Error("not seen that all of the latest calls have blocked")
	}
}

// waiting is the number of waiting calls beyond the bound.
type waiting int

func (w waiting) Now() int64         { return 0 }
func (w waiting) AtCapacity() bool   { return w >= 0 }
func (w waiting) OverCapacity() bool { return w > 0 }

// A route that blocks seldom exceeds the bound on waiting calls by at most one, however fast its other calls are.
func TestBlockingStatOfRarelyBlockingRoutes(t *testing.T) {
	var p BlockingStat
	quick := func() {
		for range 100 {
			p.Returned(0)
		}
	}
	if quick(); p.Suspect() {
		t.Error("suspect, and has not blocked")
	}
	p.Waited(0)
	quick()
	if !p.Suspect() || p.ToWorker(waiting(0), false) {
		t.Error("held up by one call that was taken over")
	}
	if !p.ToWorker(waiting(1), false) {
		t.Error("not held up when the bound is passed")
	}
	if p.ToWorker(waiting(1), true) {
		t.Error("held up although it is critical")
	}
	if p.ToWorker(waiting(-1), false) || p.Suspect() {
		t.Error("suspect although it has found room")
	}
}
