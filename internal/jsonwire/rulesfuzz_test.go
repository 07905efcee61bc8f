package jsonwire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/jsonwire"
)

// FuzzRules checks the refusals of texts that violate rules: Try and Decode agree, and the pointer leads to the offset.
func FuzzRules(f *testing.F) {
	for _, text := range []string{
		signUpText, `{"name":"abc","age":3,"sizes":{"a":9},"items":[{"qty":0}],"kids":[{"name":"x"},{}]}`, `{"mail":null,"nick":"long","deep":[{}],"both":"x"}`,
		`{"span":{"from":2,"to":1},"colors":["red",null,"x"],"quoted":"9","when":"2025-01-01T00:00:00Z","fixed":[1]}`, `{"name":1,"NAME":"x","na\u006de":"y"}`,
		`{"byName":{"~/":[],"é":[{"kids":[]}]},"tags":["",""],"ratio":0,"size":1e1}`,
	} {
		f.Add([]byte(text))
	}
	d := compile[ruled](f)
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, limits := range []jsonwire.Limits{{}, strict, {MaxDepth: 3, MaxElements: 5, MaxNumber: 3}} {
			var v ruled
			err := d.Decode(data, &v, limits)
			if d.Try(data, new(ruled), limits, nil) != (err == nil) {
				t.Fatalf("%q: Try and Decode differ", data)
			}
			r, refused := errors.AsType[*jsonwire.Refusal](err)
			if !refused {
				if !json.Valid(data) {
					t.Fatalf("%q is accepted", data)
				}
				continue
			}
			checkProblem(t, data, r)
		}
	})
}

// checkProblem checks that the pointer of a problem leads to its offset.
func checkProblem(t *testing.T, data []byte, p *jsonwire.Refusal) {
	t.Helper()
	switch p.Kind {
	case jsonwire.ProblemSyntax:
		if json.Valid(data) {
			t.Errorf("%q: valid, but got %v", data, p)
		}
		return
	case jsonwire.ProblemDepth, jsonwire.ProblemElements, jsonwire.ProblemNumber:
		return // the rest of the text was not read
	case jsonwire.ProblemMemory:
		t.Errorf("%q: got no reason", data)
		return
	}
	if strings.Contains(p.Pointer, "…") || strings.Contains(p.Pointer, "\ufffd") {
		return // truncated, or different names have the same pointer
	}
	pointer := p.Pointer
	if p.Kind == jsonwire.ProblemMissing {
		pointer = pointer[:strings.LastIndexByte(pointer, '/')]
	}
	value, found := data[p.Offset:p.End], false
	if p.Kind == jsonwire.ProblemUnknown || p.Kind == jsonwire.ProblemDuplicate || p.Kind == jsonwire.ProblemName {
		// The offset is that of the name.
		var name string
		if err := json.NewDecoder(bytes.NewReader(value)).Decode(&name); err != nil {
			t.Errorf("%q: no name at %d", data, p.Offset)
		}
		last := pointer[strings.LastIndexByte(pointer, '/')+1:]
		found = strings.NewReplacer("~1", "/", "~0", "~").Replace(last) == name
	} else {
		for _, there := range follow(data, pointer) {
			found = found || bytes.Equal(there, value)
		}
	}
	if !found {
		t.Errorf("%q: got %s does not lead to %q at %d (%v)", data, p.Pointer, value, p.Offset, p.Kind)
	}
}

// follow returns the values that a JSON pointer can mean: more than one where an object has duplicate members.
func follow(text []byte, pointer string) (values []json.RawMessage) {
	values = []json.RawMessage{bytes.TrimSpace(text)}
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if pointer == "" {
			break
		}
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		var next []json.RawMessage
		for _, v := range values {
			d := json.NewDecoder(bytes.NewReader(v))
			open, _ := d.Token()
			for n := 0; d.More(); n++ {
				name := strconv.Itoa(n)
				if open == json.Delim('{') {
					text, _ := d.Token()
					name, _ = text.(string)
				}
				var value json.RawMessage
				if d.Decode(&value) != nil {
					break
				}
				if name == token {
					next = append(next, value)
				}
			}
		}
		values = next
	}
	return values
}
