package typed_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/typed"
)

// chain makes a decoder recurse, and its goroutine's stack grow.
type chain struct {
	Name string  `json:"name" minLength:"1" maxLength:"4" pattern:"^n"`
	Next *chain  `json:"next,omitempty"`
	List []chain `json:"list,omitempty" maxItems:"1"`
}

// An input that is only a body is decoded into the action's argument, on a stack that grows meanwhile.
func TestInputOnGrowingStack(t *testing.T) {
	app := quiet()
	var kept []chain
	typed.Post(app, "/", func(_ *dunlin.Request, in struct {
		Before string `dunlin:"-"` // no source: it stays zero
		Body   chain
		After  [64]int `dunlin:"-"`
	}) (typed.None, error) {
		if in.Before != "" || in.After != [64]int{} {
			return typed.None{}, fmt.Errorf("fields next to the body were changed: %q %v", in.Before, in.After)
		}
		kept = append(kept, in.Body)
		return typed.None{}, nil
	})
	const depth = 400
	for _, form := range [][2]string{{`"next":`, ""}, {`"list":[`, "]"}} {
		body := `{"name":"n0",` + form[0]
		for i := 1; i < depth; i++ {
			body += fmt.Sprintf(`{"name":"n%d",%s`, i%1000, form[0])
		}
		body += `{"name":"nE"}` + strings.Repeat(form[1]+"}", depth)
		done := make(chan int)
		for range 3 {
			go func() { // with a small stack
				rec := post(t, app, "/", body)
				done <- rec.status
			}()
			if status := <-done; status != 204 {
				t.Fatalf("got status %d", status)
			}
		}
	}
	for _, c := range kept {
		at := &c
		for i := range depth {
			if want := fmt.Sprintf("n%d", i); at.Name != want {
				t.Fatalf("depth %d: got name %q", i, at.Name)
			}
			if at.Next != nil {
				at = at.Next
			} else {
				at = &at.List[0]
			}
		}
		if at.Name != "nE" {
			t.Fatalf("last element: got name %q", at.Name)
		}
	}
}

// Values at the limit of a rule are checked exactly.
func TestRuleBoundaries(t *testing.T) {
	app := quiet()
	typed.Post(app, "/", func(_ *dunlin.Request, _ struct {
		Body struct {
			Name  string  `json:"name,omitempty" minLength:"2" maxLength:"9"`
			Code  string  `json:"code,omitempty" minLength:"2" maxLength:"9" pattern:"^ä"`
			Small int8    `json:"small,omitempty" minimum:"-3" maximum:"4"`
			Ratio float64 `json:"ratio,omitempty" minimum:"-1" exclusiveMaximum:"2.5"`
			List  []int   `json:"list,omitempty" minItems:"1" maxItems:"3"`
		}
	}) (typed.None, error) {
		return typed.None{}, nil
	})
	for body, status := range map[string]int{
		`{"name":"a"}`: 400, `{"name":"ab"}`: 204, `{"name":"ää"}`: 204, `{"name":"ä"}`: 400, `{"name":"😀"}`: 400, `{"name":"😀😀"}`: 204,
		`{"name":"123456789"}`: 204, `{"name":"1234567890"}`: 400, `{"name":"äääääääää"}`: 204, `{"name":"ääääääääää"}`: 400,
		`{"name":"\u00e4"}`: 400, `{"name":"\u00e4\u00e4"}`: 204, `{"name":""}`: 400, `{"name":null}`: 400, `{"name":1}`: 400,
		`{"code":"ä1"}`: 204, `{"code":"1ä"}`: 400, `{"code":"ä"}`: 400, `{"code":"ä123456789"}`: 400, `{"code":"äbcdefgh"}`: 204,
		`{"small":-3}`: 204, `{"small":-4}`: 400, `{"small":4}`: 204, `{"small":5}`: 400, `{"small":128}`: 400, `{"small":-0}`: 204, `{"small":4.0}`: 204,
		`{"ratio":-1}`: 204, `{"ratio":-1.0000000000000000001}`: 400, `{"ratio":2.5}`: 400, `{"ratio":2.4999999999999999999}`: 204, `{"ratio":1e400}`: 400,
		`{"list":[]}`: 400, `{"list":[1]}`: 204, `{"list":[1,2,3]}`: 204, `{"list":[1,2,3,4]}`: 400, `{"list":{}}`: 400, ` {} `: 204, `{} x`: 400, ` `: 400,
	} {
		if rec := post(t, app, "/", body); rec.status != status {
			t.Errorf("%s: got status %d, want %d: %s", body, rec.status, status, rec.body)
		}
	}
}
