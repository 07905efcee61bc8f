// Command guide is the service of docs/GUIDE.md, a link shortener. A test keeps both equal.
package main

import (
	"context"
	"flag"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/store"
)

func main() {
	if err := run(); err != nil {
		slog.Error("links", "error", err)
		os.Exit(1)
	}
}

func run() error {
	slog.SetDefault(slog.New(traceHandler{slog.NewJSONHandler(os.Stderr, nil)})) // logger of the service and of Dunlin
	config := dunlin.Config{Timeouts: dunlin.Timeouts{Action: 10 * time.Second}}
	flag.StringVar(&config.Addr, "addr", "127.0.0.1:8080", "where to listen")
	flag.StringVar(&config.TLS.Addr, "tls-addr", "", "address to serve over TLS in addition")
	flag.StringVar(&config.TLS.Cert, "tls-cert", "", "the certificate")
	flag.StringVar(&config.TLS.Key, "tls-key", "", "its key")
	flag.DurationVar(&config.Process.DrainGrace, "grace", 0, "how long the balancer takes to notice that this process ends")
	proxies := flag.String("proxies", "", "trusted proxies, separated by commas")
	flag.Parse()
	if *proxies != "" {
		config.Proxy.Trusted = strings.Split(*proxies, ",")
	}

	st, err := store.Open(os.Getenv("DUNLIN_STORE")) // "" is memory
	if err != nil {
		return err
	}
	defer st.Close()
	s := newService(st, slog.Default())
	s.accounts.add("ada", os.Getenv("ADA_PASSWORD"), 600_000)
	app := s.app(config)

	work, stop := context.WithCancel(context.Background())
	var working sync.WaitGroup
	working.Go(func() { s.countClicks(work) })
	err = app.Run(context.Background()) // returns after a signal, when all requests have ended
	stop()
	working.Wait()
	return err
}
