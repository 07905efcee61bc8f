package load

import "testing"

const h2loadSummary = `
finished in 500.10ms, 125936.00 req/s, 3.92MB/s
requests: 62968 total, 63480 started, 62968 done, 62960 succeeded, 8 failed, 1 errored, 0 timeout
status codes: 62960 2xx, 0 3xx, 3 4xx, 4 5xx
traffic: 1.96MB (2054416) total, 62.75KB (64256) headers (space savings 99.10%), 799.46KB (818649) data
`

func TestParseH2Load(t *testing.T) {
	got, err := parseH2Load(h2loadSummary)
	if err != nil {
		t.Fatal(err)
	}
	if want := (H2LoadResult{Requests: 62960, Refused: 7, Failed: 1}); got != want || got.Errors() != 8 {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if _, err := parseH2Load("[ERROR] unknown option"); err == nil {
		t.Error("got counts from text that is not a summary")
	}
}

func TestH2LoadCommand(t *testing.T) {
	h := H2Load{Connections: 16, Streams: 32, Path: "/json", TLS: true}
	if got, want := h.Command("127.0.0.1:1", []int{1}, 5000).String(),
		"taskset -c 1 h2load -t1 -c16 -m32 -n5000 https://127.0.0.1:1/json"; got != want {
		t.Errorf("got got %s, want %s", got, want)
	}
	h = H2Load{Connections: 64, HTTP1: true, Path: "/"}
	if got, want := h.Command("127.0.0.1:1", nil, 100).String(), "h2load -t1 -c64 -m1 -n100 --h1 http://127.0.0.1:1/"; got != want {
		t.Errorf("got got %s, want %s", got, want)
	}
}
