package suite

import (
	"strings"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// LearnBlocking makes the routes whose patterns contain a part ones that are known to block, for
// good, when a request finds them. It belongs before the app serves.
func LearnBlocking(app *dunlin.App, part string) {
	server := app.Extension(exchange.ServerKey{}, nil).(*exchange.Server)
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

func (c *learnedCall) Find(host string) bool {
	found := c.Call.Find(host)
	if found {
		c.learn()
	}
	return found
}

func (c *learnedCall) FindCarefully(host string) {
	c.Call.FindCarefully(host)
	c.learn()
}

func (c *learnedCall) learn() {
	if route := c.State().Route; strings.Contains(route.Pattern, c.part) {
		route.Pace.Learn()
	}
}

func (c *learnedCall) Succeed(late exchange.Call) { c.Call.Succeed(late.(*learnedCall).Call) }
