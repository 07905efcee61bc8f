// Command dunlinstages serves the route of the blog post (see package stage) with Dunlin, as an array and
// as a slice. Dunlin needs no semaphore.
package main

import (
	"flag"
	"log"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/bench/peers/service"
	"github.com/dunlinhttp/dunlin/bench/peers/stages/stage"
)

func main() {
	name := stage.Flag()
	var config dunlin.Config
	flag.TextVar(&config.Engine, "engine", dunlin.EngineAuto, "engine: auto, std or loop")
	flag.TextVar(&config.Limits.Memory, "memory", dunlin.ByteSize(0), "memory the process may take, such as 16MiB")
	ln := service.Listen("dunlin")
	stage.CountGoroutines()

	app := dunlin.New(config)
	app.Get("/healthz", app.Readiness()).Critical()
	if *name == stage.Array {
		app.Get("/api/v1/users", usersArray)
	} else {
		app.Get("/api/v1/users", usersSlice)
	}
	log.Fatal(app.Serve(ln))
}

func usersArray(*dunlin.Request) dunlin.Response { return dunlin.JSON(stage.UsersArray()) }
func usersSlice(*dunlin.Request) dunlin.Response { return dunlin.JSON(stage.UsersSlice()) }
