package pieces

import (
	"cmp"
	"errors"
	"path"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/typed"
)

// Errors is the body of every answer to an error: messages by the name of the invalid member, else "body".
type Errors struct {
	Errors map[string][]string `json:"errors"`
}

func envelope(_ *dunlin.AnswerInfo, p *dunlin.ProblemDetails) Errors {
	messages := map[string][]string{}
	invalid, ok := errors.AsType[*typed.Invalid](p)
	if !ok {
		return Errors{map[string][]string{"body": {cmp.Or(p.Detail, p.Title)}}}
	}
	for _, v := range invalid.Violations {
		name := cmp.Or(v.Name, path.Base(v.Pointer))
		messages[name] = append(messages[name], v.Text())
	}
	return Errors{messages}
}

var problems = dunlin.FormatProblems("application/json", envelope) // for Config.Problems
