package main

import (
	"net/http"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
)

// Most tests need no port: requests are answered in memory.
func TestNotes(t *testing.T) {
	app := newApp(dunlin.Config{})
	var note Note
	if status := dunlintest.JSON(t, app, "POST", "/notes", map[string]string{"text": "buy milk"}, &note); status != 200 || note.ID != 1 {
		t.Errorf("got %d %+v", status, note)
	}
	note = Note{}
	if status := dunlintest.JSON(t, app, "GET", "/notes/1", nil, &note); status != 200 || note.Text != "buy milk" {
		t.Errorf("got %d %+v", status, note)
	}
	var problem dunlin.ProblemDetails
	if status := dunlintest.JSON(t, app, "POST", "/notes", map[string]string{"text": ""}, &problem); status != 400 {
		t.Errorf("empty note: got %d %+v", status, problem)
	}
	if status := dunlintest.JSON(t, app, "GET", "/notes/2", nil, nil); status != 404 {
		t.Errorf("missing note: got %d", status)
	}
}

// A test of connections runs once on each engine, on a port of the system's choice.
func TestNotesOnEngines(t *testing.T) {
	dunlintest.OnEngines(t, dunlin.Config{}, func(t *testing.T, empty *dunlin.App) {
		addr := dunlintest.Serve(t, newApp(empty.Config()))
		resp, err := http.Get("http://" + addr + "/notes/7")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != 404 {
			t.Error(resp.Status)
		}
	})
}
