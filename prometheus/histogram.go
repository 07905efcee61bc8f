package prometheus

import (
	"math"
	"slices"
	"time"

	prom "github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"

	"github.com/dunlinhttp/dunlin/stats"
)

// A histogram is the latency of a route in both formats of Prometheus, classic and native.
//
// The app has four buckets for each doubling of the duration. The count of a classic bucket is the sum
// of the app's buckets up to its bound. If a bound divides a bucket of the app, the durations in that
// bucket are assumed to be spread evenly. The native histogram has schema 2, whose buckets have other
// bounds. So all requests of a bucket of the app are counted as if they had the duration in its middle,
// which changes a duration by at most an eighth. The sum is computed from the middles, too. No count of
// either format ever decreases, because Prometheus would treat a decrease as a restart.
type histogram struct {
	desc   *prom.Desc
	labels []*dto.LabelPair
	bounds []time.Duration
	count  uint64
	sum    float64 // seconds
	zero   uint64  // requests shorter than zeroBelow
	native map[int]int64
	below  []uint64 // cumulative count for each of bounds
}

const (
	schema    = 2 // four buckets for each doubling
	zeroBelow = 256 * time.Nanosecond
	lastFrom  = 7 << 33 * time.Nanosecond // 60 s: lower bound of the app's last bucket, which has no upper bound
)

func newHistogram(desc *prom.Desc, values []string, bounds []time.Duration, l stats.Latency) *histogram {
	h := &histogram{desc: desc, bounds: bounds, native: map[int]int64{}, below: make([]uint64, len(bounds))}
	for i, v := range values {
		if v != "" {
			h.labels = append(h.labels, &dto.LabelPair{Name: proto.String(routeLabels[i]), Value: proto.String(v)})
		}
	}
	for below, n := range l.Buckets {
		h.add(below, n-h.count, l.Max)
		h.count = n
	}
	return h
}

// add counts n requests of the app's bucket with the upper bound end.
func (h *histogram) add(end time.Duration, n uint64, longest time.Duration) {
	if n == 0 {
		return
	}
	if end == math.MaxInt64 { // the last bucket, of which only the longest duration is known
		h.sum += float64(n)*lastFrom.Seconds() + max(longest-lastFrom, 0).Seconds()
		h.native[indexOf(lastFrom)] += int64(n)
		return
	}
	begin := beginOf(end)
	for i, bound := range h.bounds {
		switch {
		case end <= bound:
			h.below[i] += n
		case begin < bound:
			h.below[i] += uint64(float64(n) * float64(bound-begin) / float64(end-begin))
		}
	}
	middle := (begin + end) / 2
	h.sum += float64(n) * middle.Seconds()
	if end <= zeroBelow {
		h.zero += n
		return
	}
	h.native[indexOf(middle)] += int64(n)
}

// indexOf returns the index of the native bucket of a duration.
func indexOf(d time.Duration) int { return int(math.Ceil(math.Log2(d.Seconds()) * (1 << schema))) }

// beginOf returns the lower bound of the app's bucket with the upper bound end. Buckets are a
// quarter of a doubling wide, and at least 256 ns.
func beginOf(end time.Duration) time.Duration {
	width := zeroBelow
	for end > 8*width {
		width *= 2
	}
	return end - width
}

// Desc implements prometheus.Metric.
func (h *histogram) Desc() *prom.Desc { return h.desc }

// Write implements prometheus.Metric.
func (h *histogram) Write(m *dto.Metric) error {
	out := &dto.Histogram{
		SampleCount: proto.Uint64(h.count), SampleSum: proto.Float64(h.sum),
		Schema: proto.Int32(schema), ZeroThreshold: proto.Float64(zeroBelow.Seconds()), ZeroCount: proto.Uint64(h.zero),
	}
	for i, bound := range h.bounds {
		out.Bucket = append(out.Bucket, &dto.Bucket{UpperBound: proto.Float64(bound.Seconds()), CumulativeCount: proto.Uint64(h.below[i])})
	}
	var indices []int
	for i := range h.native {
		indices = append(indices, i)
	}
	slices.Sort(indices)
	last, lastCount := 0, int64(0)
	for n, i := range indices {
		if n == 0 || i != last+1 {
			offset := i
			if n > 0 {
				offset = i - last - 1
			}
			out.PositiveSpan = append(out.PositiveSpan, &dto.BucketSpan{Offset: proto.Int32(int32(offset)), Length: proto.Uint32(0)})
		}
		span := out.PositiveSpan[len(out.PositiveSpan)-1]
		span.Length = proto.Uint32(span.GetLength() + 1)
		out.PositiveDelta = append(out.PositiveDelta, h.native[i]-lastCount)
		last, lastCount = i, h.native[i]
	}
	if len(out.PositiveSpan) == 0 { // an empty span marks a native histogram
		out.PositiveSpan = []*dto.BucketSpan{{Offset: proto.Int32(0), Length: proto.Uint32(0)}}
	}
	m.Label, m.Histogram = h.labels, out
	return nil
}
