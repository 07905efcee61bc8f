package load

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/dunlinhttp/dunlin/bench/internal/proc"
)

// H2Load is a call of h2load, the load generator of nghttp2, with one thread. The call ends after a number of requests. It does
// not end after a time, because version 1.52 of h2load sometimes does not end then.
type H2Load struct {
	Connections, Streams int // Streams is the number of concurrent streams on each connection
	Path                 string
	TLS                  bool
	HTTP1                bool // requests use HTTP/1.1, one after the other on each connection
}

// H2LoadResult has the counts of a call.
type H2LoadResult struct {
	Duration        time.Duration
	Requests        int64 // requests with a response of status 2xx
	Failed, Refused int64 // requests without a response, and requests with another status
}

// Errors counts all requests without a successful response.
func (r H2LoadResult) Errors() int64 { return r.Failed + r.Refused }

// Command returns the command for the given number of requests to addr.
func (h H2Load) Command(addr string, cores []int, requests int) proc.Command {
	args := []string{
		"-t1", "-c" + strconv.Itoa(h.Connections), "-m" + strconv.Itoa(max(h.Streams, 1)),
		"-n" + strconv.Itoa(requests),
	}
	if h.HTTP1 {
		args = append(args, "--h1")
	}
	scheme := "http://"
	if h.TLS {
		scheme = "https://"
	}
	return proc.Command{Path: "h2load", Args: append(args, scheme+addr+h.Path), Cores: cores}
}

// Least is the minimum number of requests for a meaningful result. With fewer requests, not all streams would be in use for
// long enough.
func (h H2Load) Least() int { return 20 * h.Connections * max(h.Streams, 1) }

// Run runs h2load on the given cores.
func (h H2Load) Run(ctx context.Context, addr string, cores []int, requests int) (H2LoadResult, error) {
	began := time.Now()
	out, err := proc.Run(ctx, h.Command(addr, cores, requests))
	if err != nil {
		return H2LoadResult{}, err
	}
	got, err := parseH2Load(out)
	got.Duration = time.Since(began)
	return got, err
}

var (
	h2loadRequests = regexp.MustCompile(`(?m)^requests: \d+ total, \d+ started, \d+ done, \d+ succeeded, (\d+) failed, (\d+) errored, (\d+) timeout$`)
	h2loadStatuses = regexp.MustCompile(`(?m)^status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx$`)
)

// parseH2Load parses the summary that h2load prints.
func parseH2Load(out string) (H2LoadResult, error) {
	requests, statuses := numbersIn(h2loadRequests, out), numbersIn(h2loadStatuses, out)
	if requests == nil || statuses == nil {
		return H2LoadResult{}, fmt.Errorf("read h2load's counts: there are none in %q", out)
	}
	refused := statuses[1] + statuses[2] + statuses[3]
	return H2LoadResult{
		Requests: statuses[0], Refused: refused,
		// h2load counts responses with status 4xx and 5xx as failed, and also requests with an error or a timeout.
		Failed: max(requests[0]-statuses[2]-statuses[3], requests[1], requests[2]),
	}, nil
}

// numbersIn returns the numbers in the groups of a pattern. It returns nil if the pattern does not match.
func numbersIn(pattern *regexp.Regexp, out string) []int64 {
	match := pattern.FindStringSubmatch(out)
	var numbers []int64
	for i := 1; i < len(match); i++ {
		n, err := strconv.ParseInt(match[i], 10, 64)
		if err != nil {
			return nil
		}
		numbers = append(numbers, n)
	}
	return numbers
}
