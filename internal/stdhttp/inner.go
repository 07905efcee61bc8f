package stdhttp

import (
	"net/http"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// ServeInner answers a request that standard middleware has passed on. It calls enter with the call for req. enter returns the
// matched host for the parameters of the host; ok is false if the answer is no longer needed. If ok is true, ServeInner calls
// exit after the answer was sent.
func (s *Service) ServeInner(w http.ResponseWriter, req *http.Request, enter func(call exchange.Call) (host string, ok bool), exit func()) {
	x := s.wires.Get().(*wire)
	x.w, x.Req, x.inner = w, req, true
	x.s.Set(req.Method, "", req.URL.RawQuery, false)
	if host, ok := enter(x.call); ok {
		if host != "" && req.Host != host {
			x.Req = req.WithContext(req.Context())
			x.Req.Host = host
		}
		resp := exchange.Finish(x.call) // the timeout of the route applies to the whole chain of middleware and action
		x.sendSettled(&resp)
		exit()
	}
	x.release()
}
