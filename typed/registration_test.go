package typed_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/typed"
)

var intFormat = "int" + strconv.Itoa(strconv.IntSize)

// try registers an operation with the input and returns its panic.
func try[In any](method, pattern string) string {
	return panics(func() { sink[In](quiet(), method, pattern) })
}

func TestRegistrationPanics(t *testing.T) {
	type embedded struct {
		X string `query:"x"`
	}
	type strange struct {
		X string `query:"x" validate:"email"`
	}
	type outside struct {
		Name string `json:"name,omitempty"`
	}
	type left struct{ Same int }
	type right struct{ Same int }
	for _, c := range []struct{ name, got, want string }{
		{"unknown path parameter", try[struct {
			ID int `path:"ident"`
		}]("GET", "/{id}"), "field ID of struct { ID int \"path:\\\"ident\\\"\" }: the pattern has no parameter {ident}"},
		{"path parameter without field", try[struct{}]("GET", "/{id}"), "takes the path parameter {id}"},
		{"two sources", try[struct {
			A int `query:"a" header:"A"`
		}]("GET", "/"), "field A"},
		{"header with several values", panics(func() {
			typed.Get(quiet(), "/", func(*dunlin.Request, struct{}) (out struct {
				Next typed.Optional[string] `header:"Link"`
			}, err error) {
				return
			})
		}), `with the tag ` + "`" + `header:"Link,omitzero"` + "`" + ` it is left out when it is zero`},
		{"unexported", try[struct {
			a int `query:"a"` //nolint
		}]("GET", "/"), "must be exported"},
		{"rule without source", try[struct {
			A int `minimum:"1"`
		}]("GET", "/"), "field A"},
		{"rule of another kind", try[struct {
			A int `query:"a" minLength:"1"`
		}]("GET", "/"), "minLength does not apply to an integer"},
		{"misspelt rule", try[struct {
			A string `query:"a" minlength:"1"`
		}]("GET", "/"), `the name is "minLength"`},
		{"required", try[struct {
			A string `query:"a" required:"true"`
		}]("GET", "/"), `"required" is not a tag`},
		{"rule of another library", try[struct {
			Body struct {
				Lines []struct {
					Name string `json:"name" binding:"required"`
				} `json:"lines"`
			}
		}]("POST", "/"), `field Name of struct { Name string "json:\"name\" binding:\"required\"" }: binding:"required" has no effect`},
		{"rule of another library on a parameter", try[struct {
			A string `query:"a" validate:"min=1"`
		}]("GET", "/"), `validate:"min=1" has no effect`},
		{"rule by another name", try[struct {
			A int `query:"a" min:"1"`
		}]("GET", "/"), `min:"1" has no effect: write rules such as minimum:"1"`},
		{"member beside the body", try[struct {
			ID   string `path:"id"`
			Name string `json:"name"`
		}]("POST", "/{id}"), `it has json:"name" but is not part of the body, which is the field Body`},
		{"member of an embedded struct", try[struct{ outside }]("POST", "/"), `field Name of typed_test.outside: it has json:"name,omitempty"`},
		{"form of GET", try[struct {
			Page int `form:"page"`
		}]("GET", "/"), "the tag of a field of the query is query, not form"},
		{"rule of another library in an embedded struct", try[struct{ strange }]("GET", "/"), `validate:"email" has no effect`},
		{"bad number", try[struct {
			A int `query:"a" minimum:"one"`
		}]("GET", "/"), "must be a number"},
		{"bad default", try[struct {
			A int `query:"a" default:"0" minimum:"1"`
		}]("GET", "/"), "default"},
		{"bad pattern", try[struct {
			A string `query:"a" pattern:"("`
		}]("GET", "/"), "pattern"},
		{"pattern that only Go supports", try[struct {
			A string `query:"a" pattern:"(?i)a"`
		}]("GET", "/"), "pattern"},
		{"unknown format", try[struct {
			A string `query:"a" format:"emial"`
		}]("GET", "/"), "typed.Format"},
		{"format with a registered name", panics(func() { typed.Format("email", "an address", func(string) bool { return true }) }), `typed: Format("email")`},
		{"format without a function", panics(func() { typed.Format("iban", "an IBAN", nil) }), `typed: Format("iban")`},
		{"impossible", try[struct {
			A string `query:"a" minLength:"3" maxLength:"2"`
		}]("GET", "/"), "minLength 3 is more than maxLength 2"},
		{"impossible for whole numbers", try[struct {
			A int `query:"a" exclusiveMinimum:"1" exclusiveMaximum:"2"`
		}]("GET", "/"), "field A of struct"},
		{"impossible for the type", try[struct {
			Body struct {
				A struct {
					B uint8 `minimum:"256"`
				} `json:"a"`
			}
		}]("POST", "/"), "no uint8 is within the bounds"},
		{"impossible exclusive limits", try[struct {
			A float64 `query:"a" minimum:"1" exclusiveMaximum:"1.0"`
		}]("GET", "/"), "no number is between minimum 1 and exclusiveMaximum 1.0"},
		{"same parameter twice", try[struct {
			A string `header:"x-a"`
			B string `header:"X-A"`
		}]("GET", "/"), "the same header parameter"},
		{"type", try[struct {
			A map[string]int `query:"a"`
		}]("GET", "/"), "cannot be of type"},
		{"chan in a body", try[struct{ Body struct{ C chan int } }]("POST", "/"), "has no JSON"},
		{"body of GET", try[struct{ Body struct{} }]("GET", "/"), "have no body"},
		{"embedded pointer", try[struct{ *embedded }]("GET", "/"), "must not be a pointer"},
		{"null parameter", try[struct {
			A typed.Nullable[string] `query:"a"`
		}]("GET", "/"), "cannot be null"},
		{"optional without omitzero", try[struct {
			Body struct {
				A typed.Optional[string] `json:"a"`
			}
		}]("POST", "/"), "omitzero"},
		{"no struct", try[int]("GET", "/"), "must be a struct"},
		{"constraint that never fits the field", try[struct {
			ID int `path:"id"`
		}]("GET", "/{id:uuid}"), "is never int"},
		{"any method", try[struct{}]("*", "/"), "named methods"},
		{"form and body", try[struct {
			A    string `form:"a"`
			Body struct{}
		}]("POST", "/"), "not both"},
		{"equal names", try[struct {
			Body struct {
				A struct{} `json:",omitempty"`
				left
				right
			}
		}]("POST", "/"), "both called"},
		{"dependentRequired on an unknown member", try[struct {
			Body struct {
				A int `json:"a" dependentRequired:"b"`
			}
		}]("POST", "/"), "which is not a member"},
		{"same status twice", panics(func() {
			typed.Get(quiet(), "/", func(*dunlin.Request, struct{}) (typed.Either[int, string], error) {
				return typed.First[int, string](1), nil
			})
		}), "both outputs answer 200"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !strings.HasPrefix(c.got, "typed: ") || !strings.Contains(c.got, c.want) {
				t.Errorf("got panic %q, want %q", c.got, c.want)
			}
		})
	}
}

// byHand implements the tags of another library in its own Validate.
type byHand struct {
	Name string `json:"name" validate:"required"`
}

func (b *byHand) Validate(c *typed.Checks) {
	c.Check(b.Name != "", "#/name", "required", "must not be empty")
}

// Tags of another library are allowed where they have no effect.
func TestForeignTags(t *testing.T) {
	type shared struct {
		Name string `json:"name" binding:"required"`
	}
	for name, got := range map[string]string{
		"a type with Validate": try[struct {
			Body struct {
				Rows []byHand `json:"rows"`
			}
		}]("POST", "/"),
		"a tag without a rule": try[struct {
			A string `query:"a" validate:"-"`
		}]("GET", "/"),
		"a field outside the input": try[struct {
			A     string `query:"a"`
			Cache shared `dunlin:"-" validate:"required"`
			User  string `json:"-"`
			Body  struct {
				B shared `json:"-" validate:"required"`
			}
		}]("POST", "/"),
		"an output": panics(func() {
			typed.Get(quiet(), "/", func(*dunlin.Request, struct{}) (out shared, err error) { return })
		}),
	} {
		if got != "" {
			t.Errorf("%s: got panic %q", name, got)
		}
	}
}

func TestRegistrationPosition(t *testing.T) {
	op := sink[struct{}](quiet(), "GET", "/")
	if place := op.Route().Info().Place; !strings.Contains(place, "suite_test.go:") {
		t.Errorf("got position %s", place)
	}
}
