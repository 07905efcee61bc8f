package stdhttp

import (
	"net/http"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// ServeInner answers a request that standard middleware passed on. enter makes call the one
// for req, which the call has as its own from then on, and returns it with the host that was
// matched, by which its parameters are found; ok is false when nobody waits for the answer.
// exit is called when it has been sent.
func (s *Service) ServeInner(w http.ResponseWriter, req *http.Request, enter func(call exchange.Call) (host string, ok bool), exit func()) {
	x := s.wires.Get().(*wire)
	x.w, x.Req, x.inner = w, req, true
	x.s.Set(req.Method, "", req.URL.RawQuery, false)
	if host, ok := enter(x.call); ok {
		if host != "" && req.Host != host {
			x.Req = req.WithContext(req.Context())
			x.Req.Host = host
		}
		resp := exchange.Finish(x.call) // a timeout of the route counts for the whole chain
		x.sendSettled(&resp)
		exit()
	}
	x.release()
}
