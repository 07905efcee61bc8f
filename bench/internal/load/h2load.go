package load

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/dunlinhttp/dunlin/bench/internal/proc"
)

// H2Load is one call of h2load, the load generator of nghttp2, with one thread. The call is limited by a number of requests,
// because version 1.52 may never end if it is limited by a time.
type H2Load struct {
	Connections, Streams int // Streams is the number of concurrent streams per connection
	Path                 string
	TLS                  bool
	HTTP1                bool // requests over HTTP/1.1, one after the other on each connection
}

// H2LoadResult holds the counts of a call.
type H2LoadResult struct {
	Duration        time.Duration
	Requests        int64 // answered with a status of 2xx
	Failed, Refused int64 // without a response; with another status
}

// Errors counts all requests without a successful response.
func (r H2LoadResult) Errors() int64 { return r.Failed + r.Refused }

// Command returns the call against addr with this number of requests.
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

// Least is the minimum number of requests for a meaningful result, with all streams in use for long enough.
func (h H2Load) Least() int { return 20 * h.Connections * max(h.Streams, 1) }

// Run runs the call on the given cores.
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

// parseH2Load parses the summary.
func parseH2Load(out string) (H2LoadResult, error) {
	requests, statuses := numbersIn(h2loadRequests, out), numbersIn(h2loadStatuses, out)
	if requests == nil || statuses == nil {
		return H2LoadResult{}, fmt.Errorf("read h2load's counts: there are none in %q", out)
	}
	refused := statuses[1] + statuses[2] + statuses[3]
	return H2LoadResult{
		Requests: statuses[0], Refused: refused,
		// h2load counts responses of 4xx and 5xx as failed. Requests with an error or a timeout are also among the failed ones.
		Failed: max(requests[0]-statuses[2]-statuses[3], requests[1], requests[2]),
	}, nil
}

// numbersIn returns the numbers in the groups of a pattern, or nil if the pattern does not match.
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
