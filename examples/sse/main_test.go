package main

import (
	"bufio"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
)

func TestEvents(t *testing.T) {
	resp, err := dunlintest.NewClient(newApp(dunlin.Config{})).Get("http://h.example/time")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for _, want := range []string{"event: time", "data: "} {
		if !lines.Scan() || !strings.HasPrefix(lines.Text(), want) {
			t.Errorf("line %q, want %q", lines.Text(), want)
		}
	}
}
