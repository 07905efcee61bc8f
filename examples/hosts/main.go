// Command hosts serves a page for each tenant by the host name of the request, and an API on a separate host.
//
//	go run ./examples/hosts
//	curl -H 'Host: acme.example.com' 127.0.0.1:3000
package main

import (
	"context"
	"log"

	"github.com/dunlinhttp/dunlin"
)

// tenantKey has the tenant of a request.
var tenantKey = dunlin.NewKey[tenant]("tenant")

type tenant struct{ Name, Greeting string }

var tenants = map[string]tenant{
	"acme":   {"ACME", "Road runners welcome"},
	"globex": {"Globex", "We build the future"},
}

func main() {
	if err := newApp(dunlin.Config{Addr: "127.0.0.1:3000"}).Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func newApp(config dunlin.Config) *dunlin.App {
	app := dunlin.New(config)
	app.Host("api.example.com").Get("/tenants", func(*dunlin.Request) dunlin.Response { return dunlin.JSON(tenants) })
	pages := app.Host("{tenant}.example.com", onlyTenants) // exact hosts, such as api, take precedence
	pages.Get("/", func(r *dunlin.Request) dunlin.Response {
		t, _ := tenantKey.Get(r)
		return dunlin.Text(t.Name + ": " + t.Greeting + "\n")
	})
	return app
}

// onlyTenants answers 404 for a host that belongs to no tenant.
func onlyTenants(next dunlin.Action) dunlin.Action {
	return func(r *dunlin.Request) dunlin.Response {
		t, ok := tenants[r.Param("tenant")]
		if !ok {
			return dunlin.NotFound()
		}
		tenantKey.Set(r, t)
		return next(r)
	}
}
