package archtest

import (
	"context"
	"encoding"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// TestPromisedNames fails to compile if a name of the root package that programs rely on moves or changes. Such names are kept even
// where another package would be a better home: to shorten the list of exported identifiers is no reason to break programs. Do not
// edit this list to make a change pass.
func TestPromisedNames(*testing.T) {
	type app interface {
		http.Handler
		Serve(net.Listener) error
		ListenAndServe(string) error
		Shutdown(context.Context) error
		Run(context.Context) error
		Go(string, func(context.Context) error)
		NotFound(dunlin.Action)
		MethodNotAllowed(dunlin.Action)
		Use(...dunlin.Middleware)
		Install(...dunlin.Feature)
	}
	var (
		_ app                      = (*dunlin.App)(nil)
		_ encoding.TextUnmarshaler = (*dunlin.Engine)(nil)
		_ encoding.TextMarshaler   = dunlin.EngineLoop
		_                          = []any{
			(*dunlin.App).OnError, (*dunlin.App).Recover, (*dunlin.App).Mount, (*dunlin.App).Inner, (*dunlin.App).Handle,
			(*dunlin.App).Get, (*dunlin.App).Head, (*dunlin.App).Post, (*dunlin.App).Put, (*dunlin.App).Patch, (*dunlin.App).Delete,
			(*dunlin.App).Options, (*dunlin.App).Group, (*dunlin.App).Host, (*dunlin.App).Version, (*dunlin.App).Drain,
			(*dunlin.App).Routes, (*dunlin.App).ListenAndServeTLS, (*dunlin.App).ServeTLS, (*dunlin.App).Readiness,
			(*dunlin.Group).WithTimeout, (*dunlin.Group).WithMaxBody, (*dunlin.Group).WithLimit, (*dunlin.Group).WithLimitBy,
			(*dunlin.Request).Method, (*dunlin.Request).Path, (*dunlin.Request).Host, (*dunlin.Request).Param, (*dunlin.Request).Query,
			(*dunlin.Request).Header, (*dunlin.Request).Headers, (*dunlin.Request).Cookie, (*dunlin.Request).Route,
			(*dunlin.Request).Remote, (*dunlin.Request).Context, (*dunlin.Request).SetContext, (*dunlin.Request).ID,
			(*dunlin.Request).Bytes, (*dunlin.Request).Body,
			dunlin.Param[int], dunlin.Query[time.Duration], dunlin.QueryOr[bool], dunlin.Decode[int],
			dunlin.Text, dunlin.HTML, dunlin.Bytes, dunlin.JSON[int], dunlin.Empty, dunlin.NoContent, dunlin.Created, dunlin.Redirect,
			dunlin.File, dunlin.Stream, dunlin.SSE, dunlin.Problem, dunlin.Error, dunlin.NotFound, dunlin.FromStd, dunlin.Try,
			dunlin.Response.Status, dunlin.Response.Header, dunlin.Response.With, dunlin.Response.Cache, dunlin.Response.Cookie,
			dunlin.Response.StatusCode, dunlin.Response.Get, dunlin.Response.Headers, dunlin.Response.Len, dunlin.Response.Body,
			(*dunlin.App).Explain, (*dunlin.Request).DecodeBody, (*dunlin.Request).Draining, (*dunlin.Request).HeaderList,
			(*dunlin.Request).Multipart, (*dunlin.Request).OnAnswer, (*dunlin.Request).Peer, (*dunlin.Request).ReserveMemory,
			(*dunlin.Request).SentPath, dunlin.Response.WithBody, dunlin.RouteInfo.String, dunlin.Engine.String,
			(*dunlin.HeaderBlock).Get, (*dunlin.HeaderBlock).String, dunlin.EngineAuto, dunlin.EngineLoop, dunlin.EngineStd,
			dunlin.UncleanPathsRedirect, dunlin.UncleanPathsRefuse, dunlin.UncleanPathsServe, dunlin.TLSCertificates(nil),
			dunlin.TLSIssuer(nil), dunlin.ProblemFormat{},
			func(a dunlin.AnswerInfo) []any {
				return []any{
					a.Status(), a.Err(), a.Duration(), a.Route(), a.Method(), a.Path(), a.SentPath(), a.Host(), a.Bytes(), a.ID(),
					a.Remote(), a.Secure(), a.Source(), a.Dropped(), a.Context(), a.Header(""),
				}
			},
			dunlin.Config{}.Problems, dunlin.Config{}.Ready, dunlin.FromEnv,
		}
	)
}
