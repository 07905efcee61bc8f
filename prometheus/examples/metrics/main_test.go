package main

import (
	"io"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
)

func TestMetrics(t *testing.T) {
	app := newApp(dunlin.Config{})
	resp, err := dunlintest.NewClient(app.Inner(innerAddr).App()).Get("http://h.example/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(body), `http_route="/users/{id}"`) || strings.Contains(string(body), `=""`) {
		t.Errorf("got %v %s", err, body)
	}
	if status := dunlintest.JSON(t, app, "GET", "/metrics", nil, nil); status != 404 {
		t.Errorf("/metrics on the public address: got %d", status)
	}
}
