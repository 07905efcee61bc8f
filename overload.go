package dunlin

import "net/http"

// Critical says that the route's requests are never refused because the server is
// overloaded, and go ahead of others that wait for a goroutine: health checks,
// and what operators need to see what is going on. Limits of its own still hold.
// It belongs before the route's first request.
func (r *Route) Critical() *Route {
	r.shared.Critical = true
	return r
}

// overloaded makes an answer with 503 that can be given any number of times.
func overloaded(detail string) Response { return notNow(http.StatusServiceUnavailable, detail) }

// notNow makes an answer that refuses a request for a moment.
func notNow(status int, detail string) Response {
	p := &ProblemDetails{Status: status, Detail: detail}
	body, _ := p.append(nil) // only extensions can fail
	headers := NewHeaderBlock("Content-Type", "application/problem+json", "Cache-Control", "no-store", "Retry-After", "1")
	resp := plain(status, headers, string(body))
	resp.a.SetProblem(p)
	return resp
}
