// Command served is a server for the tests of package sharing. It is built with coverage counters.
//
// It prints its addresses in clear text and over TLS. Then it executes the lines of its standard input: "clear" resets the
// counters, and "write DIR" writes them into a folder. It answers each line with "done".
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"log"
	"net"
	"net/http/httptest"
	"os"
	"runtime/coverage"
	"strings"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/typed"
)

type item struct {
	ID   int      `json:"id"`
	Name string   `json:"name"`
	Tags []string `json:"tags"`
}

type showItem struct {
	ID int `path:"id" minimum:"1"`
}

func main() {
	log.SetFlags(0)
	app := dunlin.New(dunlin.Config{Engine: dunlin.EngineLoop, H2C: dunlin.H2CPriorKnowledge, Limits: dunlin.Limits{Memory: 256 << 20}})
	app.Get("/plaintext", func(*dunlin.Request) dunlin.Response { return dunlin.Text("Hello, World!") })
	app.Get("/json", func(*dunlin.Request) dunlin.Response {
		return dunlin.JSON(item{ID: 1, Name: "first", Tags: []string{"a", "b"}})
	})
	typed.Get(app, "/items/{id}", func(_ *dunlin.Request, in showItem) (item, error) {
		return item{ID: in.ID, Name: "first"}, nil
	})
	served := make(chan net.Addr)
	serve := func(secure *tls.Config) {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			log.Fatal(err)
		}
		served <- ln.Addr()
		if secure != nil {
			err = app.ServeTLS(ln, secure)
		} else {
			err = app.Serve(ln)
		}
		if err != nil {
			log.Fatal(err)
		}
	}
	go serve(nil)
	clear := <-served
	certs := httptest.NewUnstartedServer(nil)
	certs.StartTLS()
	defer certs.Close()
	go serve(&tls.Config{Certificates: certs.TLS.Certificates})
	fmt.Println(clear, <-served)
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		command, dir, _ := strings.Cut(in.Text(), " ")
		var err error
		if command == "clear" {
			err = coverage.ClearCounters()
		} else {
			err = coverage.WriteMetaDir(dir)
			if err == nil {
				err = coverage.WriteCountersDir(dir)
			}
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("done")
	}
	_ = app.Shutdown(context.Background())
}
