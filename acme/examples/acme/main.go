// Command acme serves HTTPS with certificates of Let's Encrypt, which it obtains and renews itself.
//
//	go run ./examples/acme -domain www.example.com -email you@example.com    (in the folder acme, on the machine of that name)
//
// Without -production it uses the staging environment of Let's Encrypt, whose certificates browsers do not trust.
package main

import (
	"context"
	"flag"
	"log"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/acme"
)

func main() {
	domain := flag.String("domain", "", "the `name` to serve")
	email := flag.String("email", "", "contact `address` for the authority")
	production := flag.Bool("production", false, "get certificates that browsers trust")
	flag.Parse()
	if *domain == "" {
		log.Fatal("-domain is missing")
	}
	issuer := acme.Config{Email: *email, AcceptTerms: true, Directory: acme.LetsEncryptStaging}
	if *production {
		issuer.Directory = acme.LetsEncrypt
	}
	if err := newApp(*domain, issuer).Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func newApp(domain string, issuer acme.Config) *dunlin.App {
	app := dunlin.New(dunlin.Config{
		Addr: ":80", TLS: dunlin.TLSConfig{
			Addr:    ":443", // the authority connects to one of the two ports
			Domains: []string{domain},
			Issuer:  acme.New(issuer),
			HSTS:    5 * time.Minute, // redirects clients to https; set a longer time once https works
		},
	})
	app.Get("/", func(r *dunlin.Request) dunlin.Response { return dunlin.Text("hello by TLS\n") })
	return app
}
