package typed

import (
	"bytes"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/ext"
	"github.com/dunlinhttp/dunlin/internal/schema"
)

// TestingT has the methods of *testing.T that Op.Test uses.
type TestingT interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// An Exchange is a request that Op.Test has sent, and its answer.
type Exchange[Out any] struct {
	Status  int
	Header  http.Header
	Body    []byte
	Out     Out      // the decoded JSON; zero if Problem is set, if the answer has another format, or if middleware has answered with a Status such as 304
	Problem *Problem // nil if the answer is not a problem
}

// Test sends an input through the app without a network, and returns the answer. It checks the
// answer against the operation's contract: t fails if the answer has a status, a fault, a media
// type, a header or a body that is not in the document. edit changes the request before it is sent,
// for example to add credentials.
func (op *Op[In, Out]) Test(t TestingT, app *dunlin.App, in In, edit ...func(*http.Request)) Exchange[Out] {
	t.Helper()
	e := op.Endpoint()
	m, err := e.plan.encode(reflect.ValueOf(in), e.host, e.pattern, e.params)
	var r *http.Request
	if err == nil {
		r, err = m.request(e.method, "http://"+hostOr(m.host, "test.example"))
	}
	if err != nil {
		t.Fatalf("typed: send input of %s: %v", op.label(), err)
		return Exchange[Out]{}
	}
	if version := op.route.Info().Version; version != "" {
		r.Header.Set("Accept", "application/vnd.test."+version+"+json")
	}
	r.RequestURI, r.RemoteAddr = r.URL.RequestURI(), "192.0.2.1:1234"
	for _, f := range edit {
		f(r)
	}
	before := op.undeclaredCount()
	w := &recorder{header: http.Header{}}
	app.ServeHTTP(w, r)
	a := &received{w.status, w.header, w.body.Bytes()}
	if op.undeclaredCount() > before {
		t.Errorf("typed: %s returned an undeclared error, answered with %d %s: add it with Faults", op.label(), a.status, a.body)
	}
	for _, wrong := range op.check(a, e.method, app.Config().Problems) {
		t.Errorf("typed: %s: %s", op.label(), wrong)
	}
	got := Exchange[Out]{Status: a.status, Header: a.header, Body: a.body}
	if slices.Contains(op.formatNames(), mediaType(a.header.Get("Content-Type"))) {
		return got
	}
	switch err := op.result.read(a, addressOf(&got.Out)).(type) {
	case nil:
	case *Problem:
		got.Problem = err
	default:
		own := slices.ContainsFunc(op.result.answers, func(have Answer) bool { return have.Status == a.status })
		if op.result.receive != nil && own { // otherwise middleware has answered, and check has reported any difference
			t.Errorf("typed: decode answer of %s: %v\n%d %s", op.label(), err, a.status, a.body)
		}
	}
	return got
}

func hostOr(host, other string) string {
	if host != "" {
		return host
	}
	return other
}

// undeclaredCount returns the number of undeclared answers that the operation has given.
func (o *Operation) undeclaredCount() (n int) {
	s := o.state
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, u := range s.undeclared {
		if key.op == o {
			n += u.Count
		}
	}
	return n
}

// check lists the differences between an answer and the operation's document.
func (o *Operation) check(a *received, method string, format *dunlin.ProblemFormat) (wrong []string) {
	answers := o.Answers()
	i := slices.IndexFunc(answers, func(have Answer) bool { return have.Status == a.status })
	if i < 0 {
		return []string{fmt.Sprintf("the document does not have the status %d of the answer: %s", a.status, a.body)}
	}
	want := &answers[i]
	for _, h := range want.Headers {
		if h.Always && a.header.Get(h.Name) == "" {
			wrong = append(wrong, fmt.Sprintf("the answer %d has no header %s", a.status, h.Name))
		}
	}
	kind := mediaType(a.header.Get("Content-Type"))
	wanted := want.MediaType
	if want.Problem {
		wanted = "application/problem+json"
		if format != nil {
			wanted, _ = ext.ProblemFormat(format)
		}
	}
	switch {
	case wanted == "" && len(a.body) > 0:
		wrong = append(wrong, fmt.Sprintf("the answer %d has a body of type %s, but the document has none", a.status, kind))
	case slices.Contains(want.Formats, kind): // only JSON has a schema that can be checked
	case wanted != "" && !covers(wanted, kind) && method != http.MethodHead:
		wrong = append(wrong, fmt.Sprintf("the answer %d is of type %q, but in the document of type %q", a.status, kind, wanted))
	case want.Problem && format != nil:
		_, envelope := ext.ProblemFormat(format)
		if node, err := schema.Of(envelope); err == nil && method != http.MethodHead { // package openapi reports the error of schema.Of
			wrong = append(wrong, checkJSON(node, a.body)...)
		}
	case want.Problem:
		wrong = append(wrong, want.checkProblem(newProblem(a))...)
	case !want.Item.IsZero() && kind == mediaLines:
		for line := range bytes.Lines(a.body) {
			wrong = append(wrong, checkJSON(want.Item.node, line)...)
		}
	case !want.Schema.IsZero() && wanted == mediaJSON:
		wrong = append(wrong, checkJSON(want.Schema.node, a.body)...)
	}
	return wrong
}

// covers reports whether wanted includes kind, the media type of an answer, a request body or a
// file. The argument wanted is a media type or a range such as "image/*", and may have parameters.
func covers(wanted, kind string) bool {
	wanted = mediaType(wanted)
	whole, isRange := strings.CutSuffix(wanted, "/*")
	return wanted == kind || isRange && kind != "" && (whole == "*" || strings.HasPrefix(kind, whole+"/"))
}

// checkProblem returns a message if a problem is not in the document.
func (a *Answer) checkProblem(p *Problem) []string {
	if a.Other || slices.ContainsFunc(a.Faults, func(f *Fault) bool { return f.ID() == p.Type }) {
		return nil
	}
	return []string{fmt.Sprintf("the document does not have the fault %q with the status %d", p.Type, p.Status)}
}

// checkJSON lists the differences between a body and its schema.
func checkJSON(n *schema.Node, body []byte) (wrong []string) {
	var report schema.Report
	n.CheckOutput(bytes.TrimSpace(body), &report)
	for i := range report.List {
		v := &report.List[i]
		wrong = append(wrong, fmt.Sprintf("the answer violates the schema of the document: %s %s", v.Pointer, v.Text()))
	}
	if len(wrong) > 0 {
		wrong[len(wrong)-1] += "\n" + string(body)
	}
	return wrong
}

// A recorder is a ResponseWriter that records the response.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *recorder) Header() http.Header { return w.header }

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
		w.header = w.header.Clone()
	}
}

func (w *recorder) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}

func (w *recorder) Flush() { w.WriteHeader(http.StatusOK) }
