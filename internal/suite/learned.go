package suite

import (
	"strings"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/ext"
	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// MarkBlocking marks the routes whose patterns contain part as blocking, permanently, when their first action begins. Call it
// before the app serves.
func MarkBlocking(app *dunlin.App, part string) {
	server := ext.PerApp[*exchange.Server](app, exchange.ServerKey{}, nil)
	server.Pipeline = blockingPipeline{server.Pipeline, part}
}

type blockingPipeline struct {
	exchange.Pipeline
	part string
}

func (p blockingPipeline) NewCall(w exchange.Wire) exchange.Call {
	return &blockingCall{p.Pipeline.NewCall(w), p.part}
}

type blockingCall struct {
	exchange.Call
	part string
}

// Run marks the route as blocking before its action begins. This first action still runs on the loop.
func (c *blockingCall) Run() exchange.Answer {
	if route := c.State().Route; strings.Contains(route.Pattern, c.part) {
		route.Blocking.Learn()
	}
	return c.Call.Run()
}

func (c *blockingCall) InheritFrom(late exchange.Call) {
	c.Call.InheritFrom(late.(*blockingCall).Call)
}
