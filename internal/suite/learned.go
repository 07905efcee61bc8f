package suite

import (
	"strings"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/ext"
	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// LearnBlocking marks the routes whose patterns contain part as blocking, permanently, when their first action begins. Call it
// before the app serves.
func LearnBlocking(app *dunlin.App, part string) {
	server := ext.PerApp[*exchange.Server](app, exchange.ServerKey{}, nil)
	server.Pipeline = learned{server.Pipeline, part}
}

type learned struct {
	exchange.Pipeline
	part string
}

func (p learned) NewCall(w exchange.Wire) exchange.Call {
	return &learnedCall{p.Pipeline.NewCall(w), p.part}
}

type learnedCall struct {
	exchange.Call
	part string
}

// Run learns when the action begins. The first action still runs on the loop that read its request.
func (c *learnedCall) Run() exchange.Answer {
	if route := c.State().Route; strings.Contains(route.Pattern, c.part) {
		route.Blocking.Learn()
	}
	return c.Call.Run()
}

func (c *learnedCall) InheritFrom(late exchange.Call) { c.Call.InheritFrom(late.(*learnedCall).Call) }
