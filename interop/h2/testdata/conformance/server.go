// This file makes the reference server of connectrpc.com/conformance use Dunlin instead of net/http's server. The test
// copies it into a copy of that server's package.
package referenceserver

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"os"

	"github.com/dunlinhttp/dunlin"
)

type dunlinServer struct {
	app *dunlin.App
	lis net.Listener
	tls *tls.Config
}

// newDunlinServer returns a server with the engine that DUNLIN_ENGINE names. It returns nil if the variable names no
// engine.
func newDunlinServer(ctx context.Context, handler http.Handler, addr string, tlsConf *tls.Config) (httpServer, error) {
	var engine dunlin.Engine
	if os.Getenv("DUNLIN_ENGINE") == "" {
		return nil, nil
	}
	if err := engine.UnmarshalText([]byte(os.Getenv("DUNLIN_ENGINE"))); err != nil {
		return nil, err
	}
	config := dunlin.Config{Engine: engine, Logger: slog.New(slog.DiscardHandler)}
	if tlsConf == nil {
		config.H2C = dunlin.H2CPriorKnowledge
	}
	app := dunlin.New(config)
	app.HandleStd("*", "/{rest...}", handler).MaxBody(1 << 40)
	lis, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	return &dunlinServer{app, lis, tlsConf}, err
}

func (s *dunlinServer) Serve() error {
	if s.tls != nil {
		return s.app.ServeTLS(s.lis, s.tls)
	}
	return s.app.Serve(s.lis)
}

func (s *dunlinServer) Shutdown(ctx context.Context) error { return s.app.Shutdown(ctx) }
func (s *dunlinServer) Close() error                       { return s.lis.Close() }
func (s *dunlinServer) Addr() string                       { return s.lis.Addr().String() }
