package main

import (
	"io"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
)

func TestSettings(t *testing.T) {
	t.Setenv("DUNLIN_REQUIRE_ALL", "") // of the checks of this repository; empty variables are ignored
	t.Setenv("DUNLIN_MAX_BODY", "1MiB")
	var config dunlin.Config
	if err := dunlin.FromEnv(&config); err != nil {
		t.Fatal(err)
	}
	resp, err := dunlintest.NewClient(newApp(config)).Get("http://h.example/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); string(body) != "bodies of up to 1048576 bytes\n" {
		t.Errorf("got %q", body)
	}
}
