package dunlin

import (
	"testing"
	"time"
)

func TestPaceLearnsWhatBlocksAndForgetsIt(t *testing.T) {
	var p pace
	now := int64(time.Hour)
	for range blockingScore / takeoverPenalty {
		if p.blocking(now) {
			t.Fatal("called blocking too early")
		}
		p.tookOver(now)
	}
	if !p.blocking(now) {
		t.Fatal("taken over every time, and not called blocking")
	}
	now += firstWait
	if p.blocking(now) {
		t.Fatal("no trial when it was due")
	}
	if !p.blocking(now) {
		t.Fatal("two trials at once")
	}
	p.returned(now)
	for i := 0; p.score.Load() >= blockingScore; i++ {
		if i > 5 || p.blocking(now) {
			t.Fatal("good trials do not follow one another at once")
		}
		p.returned(now)
	}
	if p.blocking(now) {
		t.Error("still called blocking after trials that went well")
	}
}

func TestPaceTriesWhatBlocksLessAndLessOften(t *testing.T) {
	var p pace
	for range 2 * blockingScore / takeoverPenalty {
		p.tookOver(0)
	}
	trials := 0
	for now := int64(0); now < int64(time.Minute); now += int64(time.Millisecond) {
		if !p.blocking(now) {
			trials++
			p.tookOver(now)
		}
	}
	// 50 ms, then 100, 200 and so on up to every ten seconds.
	if trials < 8 || trials > 14 {
		t.Errorf("%d trials in a minute", trials)
	}
}

func TestPaceOfAnActionThatIsSeldomTakenOver(t *testing.T) {
	var p pace
	for range 10_000 {
		p.tookOver(0)
		for range 2 * takeoverPenalty {
			p.returned(0)
		}
		if p.blocking(0) {
			t.Fatal("called blocking for one takeover in many calls")
		}
	}
}
