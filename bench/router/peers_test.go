package router_test

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	"github.com/julienschmidt/httprouter"
	"github.com/labstack/echo/v5"
	"github.com/uptrace/bunrouter"

	"github.com/dunlinhttp/dunlin"
)

// route is a method and a pattern with parameters in braces.
type route struct{ method, pattern string }

// peers build a handler that answers each of the routes with 204.
var peers = []struct {
	name  string
	build func(routes []route) http.Handler
}{
	{"dunlin", buildDunlin},
	{"gin", buildGin},
	{"echo", buildEcho},
	{"httprouter", buildHTTPRouter},
	{"bunrouter", buildBunRouter},
	{"chi", buildChi},
	{"std", buildStd},
}

// colons writes {name} as :name.
var colons = strings.NewReplacer("{", ":", "}", "")

func buildDunlin(routes []route) http.Handler {
	app := dunlin.New(dunlin.Config{})
	for _, r := range routes {
		app.Handle(r.method, r.pattern, func(*dunlin.Request) dunlin.Response { return dunlin.NoContent() })
	}
	return app
}

func buildGin(routes []route) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	g := gin.New()
	for _, r := range routes {
		g.Handle(r.method, colons.Replace(r.pattern), func(c *gin.Context) { c.Status(http.StatusNoContent) })
	}
	return g
}

func buildEcho(routes []route) http.Handler {
	e := echo.New()
	for _, r := range routes {
		e.Add(r.method, colons.Replace(r.pattern), func(c *echo.Context) error { return c.NoContent(http.StatusNoContent) })
	}
	return e
}

func buildHTTPRouter(routes []route) http.Handler {
	h := httprouter.New()
	for _, r := range routes {
		h.Handle(r.method, colons.Replace(r.pattern), func(w http.ResponseWriter, _ *http.Request, _ httprouter.Params) {
			w.WriteHeader(http.StatusNoContent)
		})
	}
	return h
}

func buildBunRouter(routes []route) http.Handler {
	b := bunrouter.New()
	for _, r := range routes {
		b.Handle(r.method, colons.Replace(r.pattern), func(w http.ResponseWriter, _ bunrouter.Request) error {
			w.WriteHeader(http.StatusNoContent)
			return nil
		})
	}
	return b
}

func noContent(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }

func buildChi(routes []route) http.Handler {
	c := chi.NewRouter()
	for _, r := range routes {
		c.MethodFunc(r.method, r.pattern, noContent)
	}
	return c
}

func buildStd(routes []route) http.Handler {
	mux := http.NewServeMux()
	for _, r := range routes {
		mux.HandleFunc(r.method+" "+r.pattern, noContent)
	}
	return mux
}
