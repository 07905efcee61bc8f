package dunlin

import (
	"net/http"
	"strconv"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/http1"
)

// mostRequests is the highest MaxRequestsPerConnection: connections of the loop
// engine count in 16 bits.
const mostRequests = 1<<16 - 1

// forEngines returns what engines know of the app, complete.
func (a *App) forEngines() exchange.Server {
	c := &a.config
	return exchange.Server{
		Settings: exchange.Settings{
			HeadTimeout:  c.HeadTimeout,
			BodyTimeout:  c.BodyTimeout,
			WriteTimeout: c.WriteTimeout,
			IdleTimeout:  c.IdleTimeout,

			TCPKeepAlive: c.TCPKeepAlive,
			MinBodyRate:  c.MinBodyRate,

			MaxHead:    c.MaxHead,
			MaxHeaders: c.MaxHeaders,

			MaxRequestsPerConnection: c.MaxRequestsPerConnection,
			MaxConnections:           c.MaxConnections,
			MaxConnectionsPerAddress: c.MaxConnectionsPerAddress,

			H2C: c.H2C,
		},
		Aside:     a.aside,
		Shed:      &a.shed,
		Addresses: admission.NewAddresses(c.MaxConnectionsPerAddress),
		Problem: func(status int, detail string, cause error) error {
			return &ProblemDetails{Status: status, Detail: detail, Cause: cause}
		},
	}
}

// What connections are sent that are one too many.
var (
	addressRefusal = refusal("the server has as many connections from this address as it takes")
	loopRefusal    = refusal("the server has as many connections as it takes")
)

// refusal is a whole answer to no request in particular. It has no Date, which
// RFC 9110 section 6.6.1 leaves open for 5xx.
func refusal(detail string) []byte {
	p := Problem(ProblemDetails{Status: http.StatusServiceUnavailable, Detail: detail})
	b := http1.AppendStatusLine(nil, http.StatusServiceUnavailable)
	b = http1.AppendField(b, "Content-Type", "application/problem+json")
	b = http1.AppendField(b, "Content-Length", strconv.Itoa(len(p.a.Body)))
	b = http1.AppendField(b, "Retry-After", "1")
	b = append(b, http1.ConnectionClose...)
	b = append(b, http1.CRLF...)
	return append(b, p.a.Body...)
}
