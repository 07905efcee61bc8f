package dunlin

import (
	"net/http"
	"strconv"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/http1"
)

// mostRequests is the highest MaxRequestsPerConnection: connections of the loop
// engine count in 16 bits.
const mostRequests = 1<<16 - 1

// clients bounds how many connections there are.
type clients struct {
	addresses *admission.Addresses // by remote address; nil: no bound
	slots     chan struct{}        // holds one for each connection of net/http; nil: no bound
}

func (c *clients) begin(config *Config) {
	c.addresses = admission.NewAddresses(config.MaxConnectionsPerAddress)
	if config.MaxConnections > 0 {
		c.slots = make(chan struct{}, config.MaxConnections)
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
