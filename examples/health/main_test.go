package main

import (
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/health"
)

func TestHealth(t *testing.T) {
	for _, down := range []bool{false, true} {
		db := new(database)
		db.down.Store(down)
		app := newApp(dunlin.Config{}, db)
		want, status := 200, "ok"
		if down {
			want, status = 503, "failing"
		}
		var report health.Report
		inner := app.Inner(innerAddr).App() // in memory: no port is opened
		if got := dunlintest.JSON(t, inner, "GET", "/ready", nil, &report); got != want || report.Checks[0].Status != status {
			t.Errorf("down %v: /ready is %d %+v", down, got, report)
		}
		if got := dunlintest.JSON(t, inner, "GET", "/live", nil, nil); got != 200 {
			t.Errorf("down %v: /live is %d", down, got)
		}
		if got := dunlintest.JSON(t, app, "GET", "/ready", nil, nil); got != 404 {
			t.Errorf("the public address answers /ready with %d", got)
		}
	}
}
