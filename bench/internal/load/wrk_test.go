package load_test

import (
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/bench/internal/load"
)

const wrkOutput = `Running 1s test @ http://127.0.0.1:3999/plaintext
  1 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   594.74us    0.91ms   8.50ms   91.44%
    Req/Sec    97.66k    16.02k  113.93k    70.00%
  97409 requests in 1.01s, 13.47MB read
Requests/sec:  96889.86
Transfer/sec:     13.40MB
compare: {"duration_us":1005358,"requests":97409,"bytes":14124305,"connect":1,"read":2,"write":3,"status":4,"timeout":5,"p50_us":320,"p99_us":4210,"p999_us":7001,"max_us":8500}
`

func TestParseWrk(t *testing.T) {
	got, err := load.ParseWrk(wrkOutput)
	if err != nil {
		t.Fatal(err)
	}
	want := load.WrkResult{
		Duration: 1005358 * time.Microsecond, Requests: 97409, Bytes: 14124305,
		P50: 320 * time.Microsecond, P99: 4210 * time.Microsecond, P999: 7001 * time.Microsecond,
		Connect: 1, IO: 5, Status: 4, Timeouts: 5,
	}
	if got != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if got.Errors() != 15 {
		t.Errorf("got %d errors, want 15", got.Errors())
	}
}

func TestParseWrkRefuses(t *testing.T) {
	for _, out := range []string{
		"",
		"unable to connect to 127.0.0.1:1 Connection refused\n",
		"compare: {\n",
		`compare: {"duration_us":0,"requests":0}` + "\n",
	} {
		if got, err := load.ParseWrk(out); err == nil {
			t.Errorf("%q: got %+v, want an error", out, got)
		}
	}
}

func TestWrkCommand(t *testing.T) {
	w := load.Wrk{
		Threads: 1, Connections: 64, Script: "echo.lua", ScriptArgs: []string{"1024"},
		Headers: []string{"Connection: close"}, Path: "/echo",
	}
	got := w.Command("bench", "127.0.0.1:3000", []int{1}, 1500*time.Millisecond).String()
	want := "timeout -s INT 1.5 taskset -c 1 wrk -t1 -c64 -d2s -s loads/echo.lua -H 'Connection: close' http://127.0.0.1:3000/echo -- 1024"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestWithout(t *testing.T) {
	all := load.WrkResult{Duration: 5 * time.Second, Requests: 500, Bytes: 5000, P99: time.Millisecond, Timeouts: 1}
	got := all.Without(load.WrkResult{Duration: 2 * time.Second, Requests: 100, Bytes: 1000, P99: time.Second, Timeouts: 2})
	want := load.WrkResult{Duration: 3 * time.Second, Requests: 400, Bytes: 4000, P99: time.Millisecond, Timeouts: 1}
	if got != want {
		t.Errorf("got got %+v, want %+v", got, want)
	}
}
