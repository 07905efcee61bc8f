package middleware

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// CORSConfig says which pages of other origins may read answers, and what they may send.
type CORSConfig struct {
	// Origins are the origins whose pages may read answers: "https://app.example.com", with a port if it is
	// not the scheme's default. "https://*.example.com" stands for every host below example.com, but not for
	// example.com itself, "http://localhost:*" for every port, and "*" alone for all origins.
	Origins []string

	// Methods are those that pages may use besides GET, HEAD and POST, which are always allowed. "*" stands
	// for all, unless Credentials is set. Default: PUT, PATCH and DELETE.
	Methods []string

	// Headers are the names of request headers that pages may set besides those that are always allowed, such
	// as "Content-Type" (for JSON) and "Authorization". "*" stands for all but Authorization, unless
	// Credentials is set. Default: Content-Type.
	Headers []string

	// Expose are the names of response headers that pages may read besides those that are always readable.
	// "*" stands for all, unless Credentials is set. Default: none.
	Expose []string

	// Credentials lets browsers send cookies and the like along, and pages read the answers. It
	// does not go with "*" among the origins.
	Credentials bool

	// MaxAge is how long a browser may reuse the answer to a preflight, in whole seconds. Negative: not at
	// all. Default: the header is not sent, and browsers use 5 s.
	MaxAge time.Duration
}

// CORS lets pages of other origins read answers (Fetch standard, section 3.2). It answers preflights, the
// requests by which browsers ask before they send what a form could not, with 204. For an origin that is not
// among Origins it sends no headers, and browsers keep the answer from the page; requests are not refused,
// see [CrossOrigin] for that. Answers that depend on the origin say Vary: Origin.
//
// Middleware does not see every answer: add [SendCORS] with the same settings, so that pages can also read
// why they were refused.
//
//	app.Use(middleware.CORS(config))
//	app.Policy(middleware.SendCORS(config))
//
// It belongs before whatever may refuse requests, such as authentication: preflights carry no credentials.
// CORS panics when a setting would not do what it seems to: credentials with "*", an origin that no browser
// sends, a pattern that other origins can match.
func CORS(c CORSConfig) dunlin.Middleware {
	rules := newCORSRules("CORS", c)
	return rules.around
}

// SendCORS is the policy that puts the headers of [CORS] on every answer of the app, also on those that no
// middleware sees: late ones, those over a limit, in an overload, and to what is too large. The origin of a
// request whose head could not be read is not known. Without the middleware it also answers preflights, for
// paths that have routes but no answer to OPTIONS of their own.
func SendCORS(c CORSConfig) dunlin.Policy {
	rules := newCORSRules("SendCORS", c)
	return func(info *dunlin.AnswerInfo, resp dunlin.Response) dunlin.Response {
		origin := info.Header("Origin")
		if origin != "" && info.Method() == http.MethodOptions && info.Header("Access-Control-Request-Method") != "" {
			return rules.preflight(resp, origin)
		}
		return rules.add(resp, origin)
	}
}

func (c *corsRules) around(next dunlin.Action) dunlin.Action { return around(next, edgeParts{cors: c}) }

// corsRules are what CORS and SendCORS go by, rendered.
type corsRules struct {
	any    *corsAnswer // for "*"; else nil
	first  []corsOrigin
	more   map[string]bool // beyond those
	like   []originPattern
	others *corsAnswer // for the rest of those that may; the origin is to be added
	joints
}

// A corsOrigin has answers of its own.
type corsOrigin struct {
	origin string
	answer *corsAnswer
}

// A corsAnswer is what an answer gets.
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

// mostBlocks is for how many origins answers have a block of their own: a block is put on few
// others only without being rendered anew.
const mostBlocks = 4

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
		case len(rules.first) < mostBlocks:
			rules.first = append(rules.first, corsOrigin{text, c.render(text)})
		default:
			rules.more[text] = true
		}
	}
	return rules
}

// render makes the headers for an origin; "" leaves that out.
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

// find returns which answer an origin gets, see answer, and whether it is to be named beside that.
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

// answer returns what find has found: which is 1 + the place of an origin in first, and 0 for others, of which those that
// may are to be named; nil is for the rest.
func (c *corsRules) answer(which int, name bool) *corsAnswer {
	switch {
	case which > 0:
		return c.first[which-1].answer
	case name:
		return c.others
	}
	return nil
}

// add adds the headers of an answer that is not one to a preflight.
func (c *corsRules) add(resp dunlin.Response, origin string) dunlin.Response {
	if c.any != nil {
		return resp.DefaultHeaders(c.any.plain)
	}
	which, name := c.find(origin)
	return c.say(resp, which, name, origin)
}

// say adds the headers for an origin that find has found.
func (c *corsRules) say(resp dunlin.Response, which int, name bool, origin string) dunlin.Response {
	a := c.answer(which, name)
	if a == nil {
		return varyOn(resp, "Origin", blockVaryOrigin)
	}
	if name && resp.Get(allowOrigin) == "" {
		resp = resp.Header(allowOrigin, origin)
	}
	if resp.Get("Vary") == "" {
		return resp.DefaultHeaders(a.varying)
	}
	return varyOn(resp.DefaultHeaders(a.plain), "Origin", blockVaryOrigin)
}

// preflight adds the headers of an answer to a preflight.
func (c *corsRules) preflight(resp dunlin.Response, origin string) dunlin.Response {
	if c.any != nil {
		return resp.DefaultHeaders(c.any.preflight)
	}
	which, name := c.find(origin)
	if a := c.answer(which, name); a != nil {
		resp = resp.DefaultHeaders(a.preflight)
	}
	if name && resp.Get(allowOrigin) == "" {
		resp = resp.Header(allowOrigin, origin)
	}
	return varyOn(resp, "Origin", blockVaryOrigin)
}
