package openapi_test

import (
	"encoding/json"
	"testing"

	"github.com/dunlinhttp/dunlin/openapi"
	"github.com/dunlinhttp/dunlin/typed"

	"github.com/dunlinhttp/dunlin"
)

type (
	openNote struct {
		_    struct{} `additionalProperties:"true"`
		Text string   `json:"text"`
	}
	closedNote struct {
		_    struct{} `additionalProperties:"false"`
		Text string   `json:"text"`
	}
	plainNote struct {
		Text string `json:"text"`
	}
)

// Schemas of requests forbid unknown members if the server refuses them. Schemas of responses never do, because responses may
// get more members later.
func TestUnknownMembersInDocument(t *testing.T) {
	type notes struct {
		Open   openNote   `json:"open"`
		Closed closedNote `json:"closed"`
		Plain  plainNote  `json:"plain"`
	}
	for unknown, want := range map[typed.UnknownMembers]map[string]bool{ // whether a schema forbids them
		typed.UnknownMembersReject: {"OpenNote": false, "ClosedNoteInput": true, "ClosedNote": false, "PlainNoteInput": true, "PlainNote": false, "NotesInput": true, "Notes": false},
		typed.UnknownMembersIgnore: {"OpenNote": false, "ClosedNoteInput": true, "ClosedNote": false, "PlainNote": false, "NotesInput": false, "Notes": false},
	} {
		app := quiet()
		typed.Configure(app, typed.Config{UnknownMembers: unknown})
		typed.Post(app, "/", func(_ *dunlin.Request, in struct{ Body notes }) (notes, error) { return in.Body, nil })
		doc, err := openapi.Document(app, openapi.Config{})
		if err != nil {
			t.Fatal(err)
		}
		var d struct {
			Components struct{ Schemas map[string]map[string]any }
		}
		if err := json.Unmarshal(doc, &d); err != nil {
			t.Fatal(err)
		}
		for name, forbids := range want {
			s, ok := d.Components.Schemas[name]
			if _, has := s["additionalProperties"]; !ok || has != forbids {
				t.Errorf("%d: got %s is %v", unknown, name, s)
			}
		}
		if _, split := d.Components.Schemas["PlainNoteInput"]; split != (unknown == typed.UnknownMembersReject) {
			t.Errorf("%d: got %s", unknown, doc)
		}
	}
}
