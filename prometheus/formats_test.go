package prometheus_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/prometheus"
	"github.com/dunlinhttp/dunlin/stats"
)

// The Accept headers of Prometheus: with native histograms, without them, and before OpenMetrics.
const (
	acceptNative = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5," +
		"application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
	acceptText = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4," +
		"text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
	acceptOld = "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)

// A scrape has the requested format, with the same series in each format and for all routes.
func TestFormats(t *testing.T) {
	routes := []string{`/a"b`, `/a\b`, "/\u00e9/{x}", "/a\xffb", "/a\xfeb", "/\u00e9\xe2\x82/x", "/{name}/x/{rest...}"}
	labels := []string{`/a"b`, `/a\b`, "/\u00e9/{x}", "/a%FFb", "/a%FEb", "/\u00e9%E2%82/x", "/{name}/x/{rest...}"}
	dunlintest.OnEngines(t, dunlin.Config{Logger: slog.New(slog.DiscardHandler), RouteStats: stats.On}, func(t *testing.T, app *dunlin.App) {
		for _, route := range routes {
			app.Get(route, func(*dunlin.Request) dunlin.Response { return dunlin.NoContent() })
		}
		app.Get("/metrics", prometheus.Handler(app))
		base := "http://" + dunlintest.Serve(t, app)
		own := &http.Transport{}
		defer own.CloseIdleConnections()
		client := &http.Client{Transport: own}
		get := func(path, accept string) (*http.Response, []byte) {
			req, err := http.NewRequestWithContext(t.Context(), "GET", base+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if accept != "" {
				req.Header.Set("Accept", accept)
			}
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode >= 300 {
				t.Fatalf("%s: got %d %s, %v", path, resp.StatusCode, body, err)
			}
			return resp, body
		}
		for _, path := range []string{"/a%22b", "/a%5Cb", "/%C3%A9/1", "/a%FFb", "/a%FEb", "/%C3%A9%E2%82/x", "/n/x/y/z"} {
			get(path, "")
		}
		for accept, want := range map[string]string{
			acceptNative: "application/vnd.google.protobuf", acceptText: "application/openmetrics-text", acceptOld: "text/plain", "": "text/plain", "text/html": "text/plain",
		} {
			resp, body := get("/metrics", accept)
			if got := resp.Header.Get("Content-Type"); !strings.HasPrefix(got, want+";") || !strings.Contains(strings.Join(resp.Header.Values("Vary"), ","), "Accept") {
				t.Errorf("Accept: %s: got %v", accept, resp.Header)
				continue
			}
			if want == "application/openmetrics-text" {
				checkOpenMetrics(t, string(body), labels)
				continue
			}
			families := decodeFamilies(t, resp, body)
			seen := map[string]bool{}
			for _, m := range families["http_server_request_duration_seconds"].GetMetric() {
				native := want == "application/vnd.google.protobuf"
				if h := m.GetHistogram(); native != (len(h.PositiveSpan) > 0) || len(h.Bucket) < 10 {
					t.Errorf("%s: histogram %v", want, h)
				} else if native {
					checkHistogram(t, h)
				}
				for _, l := range m.Label {
					if l.GetName() == "http_route" && m.GetHistogram().GetSampleCount() == 1 {
						seen[l.GetValue()] = true
					}
				}
			}
			for _, label := range labels {
				if !seen[label] {
					t.Errorf("%s: request to %q is missing: got %v", want, label, seen)
				}
			}
		}
	})
}

func decodeFamilies(t *testing.T, resp *http.Response, body []byte) map[string]*dto.MetricFamily {
	t.Helper()
	all := map[string]*dto.MetricFamily{}
	decoder := expfmt.NewDecoder(bytes.NewReader(body), expfmt.ResponseFormat(resp.Header))
	for {
		family := new(dto.MetricFamily)
		if err := decoder.Decode(family); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		if !model.UTF8Validation.IsValidMetricName(family.GetName()) || all[family.GetName()] != nil {
			t.Errorf("family %q: got it twice, or not at all", family.GetName())
		}
		all[family.GetName()] = family
	}
}

// checkOpenMetrics checks the differences between OpenMetrics and the older text format: the end marker, and counters whose
// family has no suffix.
func checkOpenMetrics(t *testing.T, text string, labels []string) {
	t.Helper()
	if !strings.HasSuffix(text, "\n# EOF\n") || strings.Count(text, "# EOF") != 1 {
		t.Errorf("got end %q", text[max(0, len(text)-50):])
	}
	for _, want := range []string{"# TYPE dunlin_http_requests counter\n", "# TYPE http_server_request_duration_seconds histogram\n", "# TYPE dunlin_connections_open gauge\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("got no %q", want)
		}
	}
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	for _, label := range labels {
		want := `http_server_request_duration_seconds_count{http_request_method="GET",http_route="` + escape.Replace(label) + `"} 1` + "\n"
		if !strings.Contains(text, want) {
			t.Errorf("got no %q", want)
		}
	}
}
