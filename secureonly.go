package dunlin

import (
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dunlinhttp/dunlin/router"
)

// A secureOnly examines requests before their action is called. It redirects clients to TLS, see Config.TLS.HSTS, and answers
// requests of the authority that issues certificates.
type secureOnly struct {
	only   bool         // requests in clear text are redirected, except on routes with ClearText
	hsts   *HeaderBlock // the HSTS header of answers over TLS; nil for none
	issued atomic.Pointer[TLSCertificates]
}

// newSecureOnly returns nil if no request needs to be examined.
func newSecureOnly(c *Config) *secureOnly {
	if c.TLS.HSTS == 0 && c.TLS.Issuer == nil {
		return nil
	}
	s := &secureOnly{only: c.TLS.HSTS > 0}
	if s.only && !c.TLS.Development {
		s.hsts = NewHeaderBlock("Strict-Transport-Security", "max-age="+strconv.FormatInt(int64(c.TLS.HSTS/time.Second), 10))
	}
	return s
}

// ClearText also serves the route in clear text, without the redirect of [TLSConfig.HSTS], for health checks of a load
// balancer, for example. Call it before the first request of the route.
func (r *Route) ClearText() *Route {
	r.clear = true
	return r
}

// instead replaces the action of a request from the certificate authority, or of a request that must come over TLS. It
// also clears the matched route.
func (s *secureOnly) instead(r *Request) {
	act := Action(goSecure)
	if answer, ok := s.challenge(r); ok {
		act = func(*Request) Response { return Text(answer) }
	} else if !s.only || r.route != nil && r.route.clear || r.secure() {
		return
	}
	r.match, r.route, r.s.Route, r.options = router.Match[*endpoint]{}, nil, &r.app.server.Unmatched, false
	r.within(nil)
	r.act = act // no middleware wraps act, because middleware might require a password
}

// challenge returns the answer to a request of the certificate authority.
func (s *secureOnly) challenge(r *Request) (answer string, ok bool) {
	certs := s.issued.Load()
	if certs == nil || !strings.HasPrefix(r.s.Path, "/.well-known/acme-challenge/") {
		return "", false
	}
	return (*certs).Challenge(r.wire.Host(), r.Path())
}

// goSecure answers a request that must come over TLS.
func goSecure(r *Request) Response {
	host := r.app.ports.SecureHost(r.wire.Host(), r.app.config.TLS.Domains)
	if host == "" || !strings.HasPrefix(r.s.Path, "/") || r.s.Method == http.MethodConnect {
		return Problem(&ProblemDetails{Status: http.StatusBadRequest, Detail: "the request is in clear text and has no host for a redirect: use https"})
	}
	location := string(router.AppendEscaped([]byte("https://"+host), r.SentPath()))
	if r.s.Query != "" {
		location += "?" + r.RawQuery()
	}
	return Redirect(location).Status(http.StatusPermanentRedirect)
}
