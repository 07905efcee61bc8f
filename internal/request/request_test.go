package request_test

import (
	"io"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/request"
)

// All readers of a body continue where the previous one stopped, also after the body has moved.
func TestWholeBodyHasOneReader(t *testing.T) {
	b := request.Whole{Bytes: []byte("0123456789")}
	if got := string(b.Unread()); got != "0123456789" {
		t.Errorf("before the first read %q is unread", got)
	}
	part := make([]byte, 4)
	if _, err := io.ReadFull(b.Reader(), part); err != nil || string(part) != "0123" {
		t.Fatalf("got %q, error %v", part, err)
	}
	lent := b.Bytes
	b.Move([]byte(string(lent)))
	clear(lent)
	if got := string(b.Unread()); got != "456789" {
		t.Errorf("%q is unread", got)
	}
	if rest, err := io.ReadAll(b.Reader()); err != nil || string(rest) != "456789" {
		t.Errorf("got %q, error %v", rest, err)
	}
	if string(b.Bytes) != "0123456789" {
		t.Errorf("got body %q", b.Bytes)
	}
}

func TestTargetURL(t *testing.T) {
	for _, c := range []struct {
		authority bool
		target    string
		host      string
		path      string
	}{
		{false, "/a%20b?q=1", "", "/a b"},
		{false, "*", "", "*"},
		{false, "http://host/x", "host", "/x"},
		{false, "/%zz", "", "/%zz"},
		{true, "host:443", "host:443", ""},
	} {
		if u := request.TargetURL(c.authority, c.target); u.Host != c.host || u.Path != c.path {
			t.Errorf("%q: host %q, path %q, want %q and %q", c.target, u.Host, u.Path, c.host, c.path)
		}
	}
}

func TestStdFieldsOmitHost(t *testing.T) {
	fields := request.StdFields(3, func(yield func(name, value string) bool) {
		_ = yield("Host", "x") && yield("Accept", "a") && yield("Accept", "b")
	})
	if len(fields) != 1 || strings.Join(fields["Accept"], " ") != "a b" {
		t.Errorf("got %v", fields)
	}
}

// An answer begins once; what the action does meanwhile does not end it, and the next request begins anew.
func TestPhase(t *testing.T) {
	var p request.Phase
	p.Routes(true)
	if !p.Routing() || p.Producing() || p.Answering() {
		t.Error("the route is not being found")
	}
	p.Routes(false)
	p.Produces(true)
	if !p.Answers() || p.Answers() {
		t.Error("an answer does not begin once")
	}
	if !p.Producing() || !p.Answering() {
		t.Error("the answer is not being made and sent")
	}
	p.Produces(false)
	if p.Routing() || p.Producing() || !p.Answering() {
		t.Error("the end of the making is not the end of the sending")
	}
	p.End()
	if p.Routing() || p.Producing() || p.Answering() {
		t.Error("a request has ended, and its phase has not")
	}
}
