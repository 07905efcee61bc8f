//go:build linux

package looph2

import (
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// Bytes that were sent before a wait do not count, and neither does time in which no output waited or more could be sent.
func TestSlowReaderDetection(t *testing.T) {
	settings := &exchange.Settings{WriteTimeout: time.Second, MinWriteRate: 100}
	const step = int64(250 * time.Millisecond)
	type look struct {
		waits, shut bool
		sent        int64
		want        bool
	}
	closed := func(sent int64, want bool) look { return look{true, true, sent, want} }
	for name, looks := range map[string][]look{
		"nothing since it waits":  {closed(5000, false), closed(5000, false), closed(5000, false), closed(5000, false), closed(5000, true)},
		"less than the rate":      {closed(0, false), closed(50, false), closed(60, false), closed(70, false), closed(99, true)},
		"the rate":                {closed(0, false), closed(50, false), closed(60, false), closed(70, false), closed(100, false), closed(100, false)},
		"each period for itself":  {closed(0, false), closed(999, false), closed(999, false), closed(999, false), closed(999, false), closed(999, false), closed(999, false), closed(999, false), closed(999, true)},
		"time in which it may be": {closed(0, false), closed(0, false), {true, false, 0, false}, {true, false, 0, false}, closed(0, false), closed(0, false), closed(0, true)},
		"a new answer":            {closed(0, false), closed(0, false), closed(0, false), {false, false, 0, false}, closed(0, false), closed(0, false), closed(0, false), closed(0, false), closed(0, true)},
	} {
		var taking taking
		for i, l := range looks {
			if got := taking.judge(settings, l.waits, l.shut, l.sent, step); got != l.want {
				t.Errorf("%s: look %d is %v, want %v", name, i, got, l.want)
			}
		}
	}
}
