//go:build linux

package gobench_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/bench/internal/gobench"
	"github.com/dunlinhttp/dunlin/bench/internal/results"
)

const output = `goos: linux
goarch: amd64
pkg: github.com/dunlinhttp/dunlin/bench/seeds
cpu: AMD EPYC
BenchmarkResponse/std         	 1000000	       682.5 ns/op	     504 B/op	      11 allocs/op
BenchmarkResponse/std         	 1000000	       690 ns/op	     504 B/op	      11 allocs/op
BenchmarkHeaders/fat          	       1	      180 ns/op	         753.0 GCs
PASS
ok  	github.com/dunlinhttp/dunlin/bench/seeds	3.507s
pkg: github.com/dunlinhttp/dunlin/bench/router
BenchmarkResponse/std         	 1000000	        10 ns/op
PASS
`

func TestParse(t *testing.T) {
	got, err := gobench.Parse(strings.NewReader(output))
	if err != nil {
		t.Fatal(err)
	}
	want := []results.Benchmark{
		{Package: "seeds", Name: "Response/std", Values: map[string][]float64{
			"ns/op": {682.5, 690}, "B/op": {504, 504}, "allocs/op": {11, 11},
		}},
		{Package: "seeds", Name: "Headers/fat", Values: map[string][]float64{"ns/op": {180}, "GCs": {753}}},
		{Package: "router", Name: "Response/std", Values: map[string][]float64{"ns/op": {10}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestGather(t *testing.T) {
	one := func(ns, gcs float64) []results.Benchmark {
		return []results.Benchmark{
			{Package: "seeds", Name: "Response/std", Values: map[string][]float64{"ns/op": {ns}}},
			{Package: "router", Name: "Response/std", Values: map[string][]float64{"GCs": {gcs}}},
		}
	}
	got := gobench.Gather(gobench.Gather(nil, one(1, 10)), one(2, 20))
	want := []results.Benchmark{
		{Package: "seeds", Name: "Response/std", Values: map[string][]float64{"ns/op": {1, 2}}},
		{Package: "router", Name: "Response/std", Values: map[string][]float64{"GCs": {10, 20}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
