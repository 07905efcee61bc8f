package results

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A Metric is a quantity that is measured once in each round.
type Metric struct {
	Key    string // in the JSON
	Label  string // column heading
	Unit   string // for an axis and for text
	Higher bool   // a higher value is better
	Judged bool   // readers choose a server by this metric; other metrics explain it
}

// The metrics of all scenarios. Each scenario lists its metrics, with the most important metric first.
var (
	Throughput   = Metric{"requests_per_s", "requests/s", "requests/s", true, true}
	CPU          = Metric{"cpu_us_per_request", "CPU µs/request", "µs of server CPU per request", false, true}
	CPUPerGB     = Metric{"cpu_ms_per_gb", "CPU ms/GB", "ms of server CPU per GB sent", false, true}
	P50          = Metric{"p50_ms", "p50 ms", "ms", false, false}
	P99          = Metric{"p99_ms", "p99 ms", "ms", false, true}
	P999         = Metric{"p999_ms", "p99.9 ms", "ms", false, false}
	PeakRSS      = Metric{"peak_rss_mb", "peak RSS MB", "MB of peak resident memory", false, true}
	Errors       = Metric{"errors", "errors", "errors", false, false}
	Sleepers     = Metric{"sleepers_per_s", "sleepers/s", "sleeping requests/s", true, true}
	QuietP99     = Metric{"quiet_p99_ms", "p99 ms before", "ms", false, false}
	P99Ratio     = Metric{"p99_ratio", "p99 ratio", "times the p99 before", false, false}
	Unserved     = Metric{"unserved", "unserved", "ordinary requests refused or given up", false, true}
	CutOff       = Metric{"cut_off", "cut off", "connections the server closed", true, false}
	RSSAfter     = Metric{"rss_after_mb", "RSS MB after", "MB of resident memory", false, false}
	PerConn      = Metric{"bytes_per_connection", "B/connection", "bytes of resident memory per connection", false, true}
	PerStream    = Metric{"bytes_per_stream", "B/stream", "bytes of resident memory per stream", false, true}
	Blocked      = Metric{"blocked", "blocked", "streams that stay open", true, false}
	Growth       = Metric{"growth_mb", "growth MB", "MB of resident memory more at most", false, true}
	Goroutines   = Metric{"goroutines", "goroutines", "goroutines at most", false, false}
	Connections  = Metric{"connections", "connections", "connections", true, false}
	IdleCPU      = Metric{"idle_cpu_ms_per_10s", "CPU ms in 10 s", "ms of CPU in 10 s", false, true}
	StartUp      = Metric{"startup_ms", "first answer ms", "ms from exec to the first answer", false, true}
	BinarySize   = Metric{"binary_mb", "binary MB", "MB", false, true}
	StartRSS     = Metric{"start_rss_mb", "RSS MB at start", "MB of resident memory", false, false}
	Capacity     = Metric{"capacity_per_s", "capacity/s", "requests/s", true, false}
	Goodput      = Metric{"goodput_ratio", "goodput/capacity", "goodput over capacity", true, true}
	Rejected     = Metric{"rejected_per_s", "503/s", "refused requests/s", false, false}
	RejectedP99  = Metric{"rejected_p99_ms", "503 p99 ms", "ms", false, false}
	Unanswered   = Metric{"unanswered_per_s", "unanswered/s", "requests/s without an answer in time", false, false}
	ServerBusy   = Metric{"capacity_server_busy", "server busy at capacity", "of its core the server used at capacity", true, false}
	LoadBusy     = Metric{"generator_busy", "generator busy", "of its core the load generator used", false, false}
	GeneratorLag = Metric{"generator_lag_p99_ms", "generator lag p99 ms", "ms within which 99 % of the requests left the load generator", false, false}
)

// WorstP99Ratio is the largest value of the metrics of P99RatioOf in a round.
var WorstP99Ratio = Metric{"worst_p99_ratio", "worst p99 ratio", "times the p99 before", false, false}

// WorstFloor shows how much the loads disturb clients without a server: it is the worst ratio of the p99 while a load is
// sent to a sink, to the p99 without the load. OverFloor compares a server with the sink: it is the worst ratio of the
// p99 while a load is sent to the server, to the p99 while the same load is sent to a sink.
var (
	WorstFloor = Metric{"worst_floor", "worst floor", "times the p99 before", false, false}
	OverFloor  = Metric{"worst_over_floor", "worst over floor", "times the p99 beside a sink", false, false}
)

// P99RatioOf is the p99 during a load, divided by the p99 before the load, which has the given name.
func P99RatioOf(load string) Metric {
	return Metric{"p99_ratio_" + strings.ReplaceAll(load, "-", "_"), load, "times the p99 before", false, false}
}

// The prefixes of the keys of metrics that exist for several loads.
const (
	cpuAtWait = "cpu_us_at_wait_"
	p50AtWait = "p50_ms_at_wait_"
	p50Beside = "p50_ms_beside_"
	p99Beside = "p99_ms_beside_"
)

// CPUAtWait is the CPU time of a request that waits for us microseconds. P50AtWait is the median latency of such a
// request.
func CPUAtWait(us int) Metric {
	return Metric{cpuAtWait + strconv.Itoa(us), "CPU µs at " + Microseconds(us), "µs of server CPU per request that waits for " + Microseconds(us), false, true}
}

func P50AtWait(us int) Metric {
	return Metric{p50AtWait + strconv.Itoa(us), "p50 ms at " + Microseconds(us), "ms of a request that waits for " + Microseconds(us), false, true}
}

// Wait returns the length of the wait, in microseconds, of a metric that CPUAtWait or P50AtWait has returned.
func (m Metric) Wait() (us int, is bool) {
	for _, prefix := range []string{cpuAtWait, p50AtWait} {
		if text, found := strings.CutPrefix(m.Key, prefix); found {
			us, err := strconv.Atoi(text)
			return us, err == nil
		}
	}
	return 0, false
}

// atWait returns a function that returns the metric for the end of a key.
func atWait(of func(us int) Metric) func(what string) Metric {
	return func(what string) Metric {
		us, _ := strconv.Atoi(what)
		return of(us)
	}
}

// Microseconds formats a number of microseconds as µs or ms.
func Microseconds(us int) string {
	switch {
	case us == 0:
		return "0"
	case us < 1000:
		return strconv.Itoa(us) + " µs"
	}
	return strconv.FormatFloat(float64(us)/1000, 'f', -1, 64) + " ms"
}

// P50Beside and P99Beside are latencies of requests while another load runs.
func P50Beside(what string) Metric {
	return Metric{p50Beside + what, "p50 ms beside " + what, "ms of half of the requests beside " + what, false, false}
}

func P99Beside(what string) Metric {
	return Metric{p99Beside + what, "p99 ms beside " + what, "ms of 99 % of the requests beside " + what, false, true}
}

// All has all metrics, to find a metric by its key.
var All = []Metric{
	Throughput, CPU, CPUPerGB, P50, P99, P999, PeakRSS, Errors, Sleepers, QuietP99, P99Ratio, WorstP99Ratio, WorstFloor, OverFloor, Unserved, CutOff, RSSAfter, PerConn, PerStream, Blocked, Growth, Goroutines,
	Connections, IdleCPU, StartUp, BinarySize, StartRSS, Capacity, Goodput, Rejected, RejectedP99,
	Unanswered, ServerBusy, LoadBusy, GeneratorLag,
}

// MetricByKey returns the metric with the given key. It returns false if the key is unknown.
func MetricByKey(key string) (Metric, bool) {
	for _, metric := range All {
		if metric.Key == key {
			return metric, true
		}
	}
	if what, found := strings.CutPrefix(key, "p99_ratio_"); found {
		return P99RatioOf(strings.ReplaceAll(what, "_", "-")), true
	}
	for _, family := range []struct {
		prefix string
		of     func(what string) Metric
	}{{cpuAtWait, atWait(CPUAtWait)}, {p50AtWait, atWait(P50AtWait)}, {p50Beside, P50Beside}, {p99Beside, P99Beside}} {
		if what, found := strings.CutPrefix(key, family.prefix); found {
			metric := family.of(what)
			return metric, metric.Key == key
		}
	}
	return Metric{}, false
}

// Format formats v with three significant digits and separators for thousands. Counts are not rounded.
func Format(v float64) string {
	switch {
	case v < 0:
		return "-" + Format(-v)
	case v < 100 && v == math.Trunc(v):
		return strconv.Itoa(int(v))
	case v < 0.995:
		return strconv.FormatFloat(v, 'f', 3, 64)
	case v < 9.995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case v < 99.95:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	digits := strconv.FormatFloat(v, 'f', 0, 64)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = fmt.Sprintf("%s,%s", digits[:at], digits[at:])
	}
	return digits
}
