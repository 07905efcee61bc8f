package middleware

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/ext"
)

// CORSConfig has the settings of [CORS].
type CORSConfig struct {
	// Origins are the origins whose pages may read responses: "https://app.example.com", with a
	// port if it is not the scheme's default. "https://*.example.com" matches every host below
	// example.com, but not example.com itself; "http://localhost:*" matches every port; "*" alone
	// matches all origins.
	Origins []string

	// Methods are the methods that pages may use in addition to GET, HEAD and POST, which are
	// always allowed. "*" means all, unless Credentials is set. Default: PUT, PATCH and DELETE.
	Methods []string

	// Headers are the names of request headers that pages may set, such as "Content-Type" (for JSON)
	// and "Authorization". Some headers, such as Accept, are always allowed. "*" means all except
	// Authorization, unless Credentials is set. Default: Content-Type.
	Headers []string

	// Expose are the names of response headers that pages may read in addition to those that are
	// always readable. "*" means all, unless Credentials is set. Default: none.
	Expose []string

	// Credentials allows browsers to send cookies and other credentials, and pages to read the
	// responses. It cannot be combined with "*" in Origins.
	Credentials bool

	// MaxAge is the time for which a browser may cache the response to a preflight, in whole seconds. A negative value disables
	// caching. Default: the header is not sent, and browsers use 5 s.
	MaxAge time.Duration
}

// CORS lets pages of other origins read responses (Fetch standard, section 3.2). It answers
// preflights with 204. By a preflight a browser asks for permission before it sends a request that a
// form cannot send. A request from an unlisted origin runs, but its response has no CORS headers, so
// the browser hides the response from the page. To refuse such requests use [CrossOrigin]. Responses
// that depend on the origin get Vary: Origin.
//
// All answers have the headers, so that pages can also read why a request was refused: answers at a timeout,
// over a limit, in an overload, and to requests that are too large. An answer to an unreadable request head has
// no CORS headers, since its origin is unknown. Install CORS for the app or a group:
//
//	app.Group("/api").Install(middleware.CORS(config))
//
// A preflight is answered before all middleware, such as authentication, since preflights have no
// credentials. CORS panics for settings that do not do what they seem to do: credentials with "*", an
// origin that no browser sends, and a pattern that also matches origins of other owners.
func CORS(c CORSConfig) dunlin.Feature {
	rules := newCORSRules("CORS", c)
	return edgeParts{cors: rules}.feature(rules.send)
}

// send adds the headers to an answer that was not made inside the feature. One such answer is that to a preflight for a path
// that has routes, but no action for OPTIONS.
func (c *corsRules) send(info *dunlin.AnswerInfo, resp dunlin.Response) dunlin.Response {
	origin := info.Header("Origin")
	if origin != "" && info.Method() == http.MethodOptions && info.Header("Access-Control-Request-Method") != "" {
		return c.preflight(resp, origin)
	}
	return c.add(resp, origin)
}

// corsRules are the rendered settings of CORS.
type corsRules struct {
	any    *corsAnswer // the headers for all origins if Origins is "*"; else nil
	first  []corsOrigin
	more   map[string]bool // origins after those in first
	like   []originPattern
	others *corsAnswer // for other allowed origins, without the origin
	joints
}

// A corsOrigin is an origin with its rendered headers.
type corsOrigin struct {
	origin string
	answer *corsAnswer
}

// A corsAnswer has the headers of responses to an origin.
type corsAnswer struct {
	plain     *dunlin.HeaderBlock // without Vary
	varying   *dunlin.HeaderBlock
	preflight *dunlin.HeaderBlock
}

const allowOrigin = "Access-Control-Allow-Origin"

var (
	blockVaryOrigin = dunlin.NewHeaderBlock("Vary", "Origin")
	blockNothing    = dunlin.NewHeaderBlock()
)

// maxBlocks is the maximum number of origins in corsRules.first. It limits the number of combinations
// for which joined blocks are rendered in advance.
const maxBlocks = 4

func newCORSRules(who string, c CORSConfig) *corsRules {
	c.check(who)
	rules := &corsRules{}
	if c.Origins[0] == "*" {
		rules.any = c.render("*")
		return rules
	}
	rules.more = make(map[string]bool)
	rules.others = c.render("")
	for _, text := range c.Origins {
		switch o := parseOrigin(who, text); {
		case o.suffix != "" || o.anyPort:
			rules.like = append(rules.like, o)
		case len(rules.first) < maxBlocks:
			rules.first = append(rules.first, corsOrigin{text, c.render(text)})
		default:
			rules.more[text] = true
		}
	}
	return rules
}

// render returns the headers for an origin; "" omits the origin.
func (c *CORSConfig) render(origin string) *corsAnswer {
	var plain, preflight []string
	if origin != "" {
		plain = append(plain, allowOrigin, origin)
	}
	if c.Credentials {
		plain = append(plain, "Access-Control-Allow-Credentials", "true")
	}
	preflight = append(preflight, plain...)
	if len(c.Expose) > 0 {
		plain = append(plain, "Access-Control-Expose-Headers", strings.Join(c.Expose, ", "))
	}
	methods, headers := c.Methods, c.Headers
	if methods == nil {
		methods = []string{http.MethodPut, http.MethodPatch, http.MethodDelete}
	}
	if headers == nil {
		headers = []string{"Content-Type"}
	}
	if len(methods) > 0 {
		preflight = append(preflight, "Access-Control-Allow-Methods", strings.Join(methods, ", "))
	}
	if len(headers) > 0 {
		preflight = append(preflight, "Access-Control-Allow-Headers", strings.Join(headers, ", "))
	}
	if c.MaxAge != 0 {
		preflight = append(preflight, "Access-Control-Max-Age", strconv.FormatInt(max(int64(c.MaxAge/time.Second), 0), 10))
	}
	a := &corsAnswer{plain: blockNothing, preflight: dunlin.NewHeaderBlock(preflight...)}
	if len(plain) > 0 {
		a.plain = dunlin.NewHeaderBlock(plain...)
	}
	a.varying = dunlin.NewHeaderBlock(append(slices.Clip(plain), "Vary", "Origin")...)
	return a
}

// find returns the index of an origin's headers for answer, and whether the origin must be added to
// them.
func (c *corsRules) find(origin string) (which int, name bool) {
	if origin == "" {
		return 0, false
	}
	for i := range c.first {
		if c.first[i].origin == origin {
			return i + 1, false
		}
	}
	if len(c.more) > 0 && c.more[origin] {
		return 0, true
	}
	for i := range c.like {
		if c.like[i].matches(origin) {
			return 0, true
		}
	}
	return 0, false
}

// answer returns the headers for a result of find: which is 1 + the index of an origin in first, or 0
// for another origin. It returns nil for an origin that is not allowed.
func (c *corsRules) answer(which int, name bool) *corsAnswer {
	switch {
	case which > 0:
		return c.first[which-1].answer
	case name:
		return c.others
	}
	return nil
}

// add adds the headers to a response that does not answer a preflight.
func (c *corsRules) add(resp dunlin.Response, origin string) dunlin.Response {
	if c.any != nil {
		return ext.DefaultHeaders(resp, c.any.plain)
	}
	which, name := c.find(origin)
	return c.say(resp, which, name, origin)
}

// say adds the headers for the result of find.
func (c *corsRules) say(resp dunlin.Response, which int, name bool, origin string) dunlin.Response {
	a := c.answer(which, name)
	if a == nil {
		return varyOn(resp, "Origin", blockVaryOrigin)
	}
	if name && resp.Get(allowOrigin) == "" {
		resp = resp.Header(allowOrigin, origin)
	}
	if resp.Get("Vary") == "" {
		return ext.DefaultHeaders(resp, a.varying)
	}
	return varyOn(ext.DefaultHeaders(resp, a.plain), "Origin", blockVaryOrigin)
}

// preflight adds the headers to a response to a preflight.
func (c *corsRules) preflight(resp dunlin.Response, origin string) dunlin.Response {
	if c.any != nil {
		return ext.DefaultHeaders(resp, c.any.preflight)
	}
	which, name := c.find(origin)
	if a := c.answer(which, name); a != nil {
		resp = ext.DefaultHeaders(resp, a.preflight)
	}
	if name && resp.Get(allowOrigin) == "" {
		resp = resp.Header(allowOrigin, origin)
	}
	return varyOn(resp, "Origin", blockVaryOrigin)
}
