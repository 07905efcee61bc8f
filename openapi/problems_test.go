package openapi_test

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/openapi"
	"github.com/dunlinhttp/dunlin/typed"
)

// ConduitErrors is the error format of the RealWorld API.
type ConduitErrors struct {
	Errors struct {
		Body []string `json:"body"`
	} `json:"errors"`
}

func conduitErrors(_ *dunlin.AnswerInfo, p *dunlin.ProblemDetails) (e ConduitErrors) {
	e.Errors.Body = []string{p.Title}
	if invalid, ok := errors.AsType[*typed.Invalid](p); ok {
		e.Errors.Body = nil
		for _, v := range invalid.Violations {
			e.Errors.Body = append(e.Errors.Body, v.Name+v.Pointer+" "+v.Text())
		}
	}
	return e
}

// GoogleError is the error format of Google's APIs.
type GoogleError struct {
	Error GoogleStatus `json:"error"`
}

type GoogleStatus struct {
	Code    int              `json:"code"`
	Message string           `json:"message"`
	Status  string           `json:"status"`
	Details []map[string]any `json:"details"`
}

func googleError(info *dunlin.AnswerInfo, p *dunlin.ProblemDetails) GoogleError {
	e := GoogleStatus{Code: p.Status, Message: p.Title, Status: strings.ToUpper(strings.ReplaceAll(http.StatusText(p.Status), " ", "_"))}
	if p.Type != "" {
		e.Details = append(e.Details, map[string]any{"reason": p.Type, "path": info.Path()})
	}
	return GoogleError{e}
}

// APIErrors is the error format of JSON:API.
type APIErrors struct {
	Errors []APIError `json:"errors"`
}

type APIError struct {
	Status string     `json:"status"`
	Code   string     `json:"code,omitempty"`
	Title  string     `json:"title"`
	Source *APISource `json:"source,omitempty"`
}

type APISource struct {
	Pointer   string `json:"pointer,omitempty"`
	Parameter string `json:"parameter,omitempty"`
}

func apiErrors(_ *dunlin.AnswerInfo, p *dunlin.ProblemDetails) (all APIErrors) {
	status := strconv.Itoa(p.Status)
	violations, _ := p.Extensions["errors"].([]typed.Violation)
	for _, v := range violations {
		all.Errors = append(all.Errors, APIError{status, v.Rule, v.Text(), &APISource{v.Pointer, v.Name}})
	}
	if len(violations) == 0 {
		all.Errors = append(all.Errors, APIError{Status: status, Code: p.Type, Title: p.Title})
	}
	return all
}

func TestProblemFormats(t *testing.T) {
	type input struct {
		ID int `path:"id" minimum:"1"`
	}
	var missing = typed.NewFault(404, "missing", "thing not found")
	for _, c := range []struct {
		name                        string
		format                      *dunlin.ProblemFormat
		schema, media               string
		found, invalid, none, wrong string // answers
	}{
		{
			"RealWorld", dunlin.FormatProblems("application/json", conduitErrors), "ConduitErrors", "application/json",
			`{"errors":{"body":["thing not found"]}}`, `{"errors":{"body":["id must be at least 1"]}}`,
			`{"errors":{"body":["Not Found"]}}`, `{"errors":{"body":["Internal Server Error"]}}`,
		},
		{
			"Google", dunlin.FormatProblems("application/json; charset=utf-8", googleError), "GoogleError", "application/json; charset=utf-8",
			`{"error":{"code":404,"message":"thing not found","status":"NOT_FOUND","details":[{"path":"/things/1","reason":"missing"}]}}`,
			`{"error":{"code":400,"message":"Bad Request","status":"BAD_REQUEST","details":[]}}`,
			`{"error":{"code":404,"message":"Not Found","status":"NOT_FOUND","details":[]}}`,
			`{"error":{"code":500,"message":"Internal Server Error","status":"INTERNAL_SERVER_ERROR","details":[]}}`,
		},
		{
			"JSON:API", dunlin.FormatProblems("application/vnd.api+json", apiErrors), "APIErrors", "application/vnd.api+json",
			`{"errors":[{"status":"404","code":"missing","title":"thing not found"}]}`,
			`{"errors":[{"status":"400","code":"minimum","title":"must be at least 1","source":{"parameter":"id"}}]}`,
			`{"errors":[{"status":"404","title":"Not Found"}]}`, `{"errors":[{"status":"500","title":"Internal Server Error"}]}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			app := dunlin.New(dunlin.Config{Problems: c.format, Logger: slog.New(slog.DiscardHandler)})
			op := typed.Get(app, "/things/{id:int}", func(_ *dunlin.Request, in input) (typed.None, error) {
				if in.ID == 2 {
					panic("test")
				}
				return typed.None{}, missing.WithCause(errors.New("secret"))
			}).Faults(missing)
			for id, want := range map[int]string{0: c.invalid, 1: c.found, 2: c.wrong} {
				got := op.Test(t, app, input{id})
				if string(got.Body) != want || got.Header.Get("Content-Type") != c.media || got.Problem == nil || got.Problem.Status != got.Status {
					t.Errorf("%d: got %d %s %s, want %s", id, got.Status, got.Header.Get("Content-Type"), got.Body, want)
				}
			}
			resp, err := dunlintest.NewClient(app).Get("http://example.com/none")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			b := make([]byte, resp.ContentLength)
			if _, err := resp.Body.Read(b); string(b) != c.none {
				t.Errorf("no route: got %s, %v, want %s", b, err, c.none)
			}
			doc, err := openapi.Document(app, openapi.Config{})
			if err != nil {
				t.Fatal(err)
			}
			var d struct {
				Paths      map[string]map[string]struct{ Responses map[string]any }
				Components struct {
					Schemas, Responses map[string]any
				}
			}
			if err := json.Unmarshal(doc, &d); err != nil {
				t.Fatal(err)
			}
			ref, err := json.Marshal(d.Paths["/things/{id}"]["get"].Responses["404"])
			if err != nil || !strings.Contains(string(ref), `"content":{"`+c.media+`":{"schema":{"$ref":"#/components/schemas/`+c.schema+`"}}}`) {
				t.Errorf("404 in the document is %s, %v", ref, err)
			}
			if d.Components.Schemas[c.schema] == nil || d.Components.Schemas["Problem"] != nil || strings.Contains(string(doc), "problem+json") {
				t.Errorf("the document does not describe the configured problem format: %s", doc)
			}
		})
	}
}

// A format may contain the violations themselves: the document describes their members.
func TestProblemFormatWithViolations(t *testing.T) {
	type apiError struct {
		Fields []typed.Violation `json:"fields,omitempty"`
	}
	app := dunlin.New(dunlin.Config{Problems: dunlin.FormatProblems("application/json", func(_ *dunlin.AnswerInfo, p *dunlin.ProblemDetails) (e apiError) {
		if invalid, ok := errors.AsType[*typed.Invalid](p); ok {
			e.Fields = invalid.Violations
		}
		return e
	})})
	typed.Get(app, "/things/{id:int}", func(_ *dunlin.Request, _ struct {
		ID int `path:"id" minimum:"1"`
	}) (typed.None, error) {
		return typed.None{}, nil
	})
	got, err := dunlintest.NewClient(app).Get("http://example.com/things/0")
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	const want = `{"fields":[{"in":"path","parameter":"id","rule":"minimum","limit":"1","detail":"must be at least 1"}]}`
	if b, err := io.ReadAll(got.Body); string(b) != want {
		t.Errorf("got %s, %v, want %s", b, err, want)
	}
	doc, err := openapi.Document(app, openapi.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, member := range []string{`"pointer"`, `"parameter"`, `"rule"`, `"detail"`} {
		if !strings.Contains(string(doc), member) {
			t.Errorf("the document does not contain %s: %s", member, doc)
		}
	}
}
