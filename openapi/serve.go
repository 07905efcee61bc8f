package openapi

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/typed"
)

//go:embed page/index.html page/page.css page/page.js
var files embed.FS

// Serve registers a page for reading the document and trying the operations. The path of the page
// is prefix, such as "/docs", and its files are below prefix. Serve also registers the document
// itself there: openapi.json in the version c.OpenAPI, and openapi-3.1.json and openapi-3.2.json.
//
// The page is embedded in the program and loads nothing from other hosts. Its
// Content-Security-Policy permits its own files, and requests to its own server and to the servers
// in Config.Servers. Use middleware to control who can read the page.
//
// The document is written at the first request for it, and again after routes were added.
func Serve(g typed.Router, prefix string, c Config, middleware ...dunlin.Middleware) {
	if prefix == "" || prefix[0] != '/' || strings.HasSuffix(prefix, "/") || strings.ContainsAny(prefix, "{}") {
		panic(fmt.Sprintf("openapi: Serve(%q): a prefix begins with a slash, does not end with one and has no parameters", prefix))
	}
	base := prefix[strings.LastIndexByte(prefix, '/')+1:]
	policy := dunlin.NewHeaderBlock("Content-Security-Policy", contentPolicy(c), "X-Content-Type-Options", "nosniff",
		"Referrer-Policy", "no-referrer", "Cross-Origin-Opener-Policy", "same-origin", "Cache-Control", "no-cache")
	get := func(name, kind string, body []byte) {
		file := newAsset(kind, body)
		g.Handle(http.MethodGet, prefix+name, func(r *dunlin.Request) dunlin.Response { return file.answer(r, policy) }, middleware...)
	}
	read := func(name string) []byte {
		b, err := files.ReadFile("page/" + name)
		if err != nil {
			panic(err) // cannot happen, because the file is embedded in the program
		}
		return b
	}
	get("", "text/html; charset=utf-8", []byte(strings.ReplaceAll(string(read("index.html")), "%BASE%", base)))
	get("/page.css", "text/css; charset=utf-8", read("page.css"))
	get("/page.js", "text/javascript; charset=utf-8", read("page.js"))
	for name, version := range map[string]string{"/openapi.json": c.OpenAPI, "/openapi-3.1.json": "3.1", "/openapi-3.2.json": "3.2"} {
		d := &servedDocument{app: g.App(), config: c}
		d.config.OpenAPI = version
		g.Handle(http.MethodGet, prefix+name, func(r *dunlin.Request) dunlin.Response { return d.answer(r, policy) }, middleware...)
	}
}

// contentPolicy returns the Content-Security-Policy of the page. It permits only the page's own
// files, and requests to the servers of the API.
func contentPolicy(c Config) string {
	connect := "'self'"
	for _, s := range c.Servers {
		if u, err := url.Parse(s.URL); err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") && !strings.ContainsAny(u.Host, ";,{} '\"") {
			connect += " " + u.Scheme + "://" + u.Host
		}
	}
	return "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src " + connect +
		"; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}

// An asset is a file with its ETag.
type asset struct {
	kind, tag string
	body      []byte
}

func newAsset(kind string, body []byte) *asset {
	sum := sha256.Sum256(body)
	return &asset{kind, `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`, body}
}

func (a *asset) answer(r *dunlin.Request, policy *dunlin.HeaderBlock) dunlin.Response {
	if strings.Contains(r.Header("If-None-Match"), a.tag) {
		return dunlin.Empty().Status(http.StatusNotModified).With(policy).Header("ETag", a.tag)
	}
	return dunlin.Bytes(a.kind, a.body).With(policy).Header("ETag", a.tag)
}

// A servedDocument keeps a document until the routes of the app change.
type servedDocument struct {
	app    *dunlin.App
	config Config

	mu     sync.Mutex
	routes int
	file   *asset
}

func (d *servedDocument) answer(r *dunlin.Request, policy *dunlin.HeaderBlock) dunlin.Response {
	d.mu.Lock()
	defer d.mu.Unlock()
	if routes := len(d.app.Routes()); d.file == nil || routes != d.routes {
		doc, err := Document(d.app, d.config)
		if err != nil {
			return dunlin.Error(err)
		}
		d.file, d.routes = newAsset("application/json", doc), routes
	}
	return d.file.answer(r, policy)
}
