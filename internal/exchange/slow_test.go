package exchange_test

import (
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

func TestBodyRate(t *testing.T) {
	type arrival struct {
		after time.Duration
		bytes int64
		slow  bool
	}
	for _, c := range []struct {
		name     string
		rate     int
		arrivals []arrival
	}{
		{"fast", 100, []arrival{{time.Second, 5000, false}, {time.Second, 5000, false}}},
		{"at the rate", 100, []arrival{{5 * time.Second, 500, false}, {5 * time.Second, 500, false}, {10 * time.Second, 1000, false}}},
		{"below it", 100, []arrival{{5 * time.Second, 500, false}, {5 * time.Second, 499, true}}},
		{"in its second period", 100, []arrival{{10 * time.Second, 100_000, false}, {9 * time.Second, 1, false}, {time.Second, 1, true}}},
		{"without a rate", -1, []arrival{{10 * time.Second, 1, false}, {10 * time.Second, 1, false}, {10 * time.Second, 0, true}}},
		{"a low rate", 1, []arrival{{10 * time.Second, 9, true}}},
	} {
		settings := exchange.Settings{BodyTimeout: 10 * time.Second, MinBodyRate: c.rate}
		var p exchange.BodyPace
		for i, a := range c.arrivals {
			if got := p.TooSlow(&settings, a.after, a.bytes); got != a.slow {
				t.Errorf("%s: arrival %d is too slow: got %v, want %v", c.name, i+1, got, a.slow)
			}
			if left := p.Left(&settings); left <= 0 || left > settings.BodyTimeout {
				t.Errorf("%s: got %v left after arrival %d", c.name, left, i+1)
			}
		}
	}
}
