-- Prints what wrk counted as one line of JSON, with the percentiles its own summary lacks.
-- Alone it leaves the request to the command line, so that wrk runs at full speed.

function done(summary, latency)
  local e = summary.errors
  io.write(string.format(
    'compare: {"duration_us":%d,"requests":%d,"bytes":%.0f,"connect":%d,"read":%d,"write":%d,' ..
    '"status":%d,"timeout":%d,"p50_us":%d,"p99_us":%d,"p999_us":%d,"max_us":%d}\n',
    summary.duration, summary.requests, summary.bytes, e.connect, e.read, e.write, e.status,
    e.timeout, latency:percentile(50), latency:percentile(99), latency:percentile(99.9), latency.max))
end
