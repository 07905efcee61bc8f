package dunlin

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/dunlinhttp/dunlin/router"
)

// A secureOnly has clients come by TLS, see Config.HSTS.
type secureOnly struct {
	hsts *HeaderBlock // of answers by TLS; nil for none
}

// newSecureOnly returns nil where requests in clear text are served.
func newSecureOnly(c *Config) *secureOnly {
	if c.HSTS == 0 {
		return nil
	}
	s := new(secureOnly)
	if !c.TLSDevelopment {
		s.hsts = NewHeaderBlock("Strict-Transport-Security", "max-age="+strconv.FormatInt(int64(c.HSTS/time.Second), 10))
	}
	return s
}

// ClearText has the route served in clear text, too, where [Config.HSTS] redirects: for health
// checks of a balancer, say. It belongs before the route's first request.
func (r *Route) ClearText() *Route {
	r.clear = true
	return r
}

// instead replaces the action of a request that must come by TLS. What it was found to ask for does not
// matter then.
func (s *secureOnly) instead(r *Request) {
	if r.route != nil && r.route.clear || r.secure() {
		return
	}
	r.match, r.route, r.s.Route, r.options = router.Match[*endpoint]{}, nil, &r.app.server.Unmatched, false
	r.act = goSecure // without middleware, which might ask for a password
}

// goSecure answers a request that must come by TLS.
func goSecure(r *Request) Response {
	host := r.app.ports.SecureHost(r.wire.Host())
	if host == "" || !strings.HasPrefix(r.s.Path, "/") || r.s.Method == http.MethodConnect {
		return Problem(ProblemDetails{Status: http.StatusBadRequest, Detail: "the request came in clear text: use https"})
	}
	location := string(router.AppendEscaped([]byte("https://"+host), r.s.Path))
	if r.s.Query != "" {
		location += "?" + r.RawQuery()
	}
	return Redirect(location).Status(http.StatusPermanentRedirect)
}
