package exchange_test

import (
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

func TestAnnounceTrailers(t *testing.T) {
	req := &http.Request{Header: http.Header{"Trailer": {"x-sum, Content-Length ,,trailer", "X-SUM,Transfer-Encoding,x-other"}, "X-A": {"a"}}}
	exchange.AnnounceTrailers(req)
	if got := slices.Sorted(maps.Keys(req.Trailer)); !slices.Equal(got, []string{"X-Other", "X-Sum"}) {
		t.Errorf("announced are %q", got)
	}
	if len(req.Header) != 1 || req.Trailer["X-Sum"] != nil {
		t.Errorf("headers %v, trailers %v", req.Header, req.Trailer)
	}
	req = &http.Request{Header: http.Header{"Trailer": {"Content-Length"}}}
	if exchange.AnnounceTrailers(req); req.Trailer != nil {
		t.Errorf("announced are %v", req.Trailer)
	}
}
