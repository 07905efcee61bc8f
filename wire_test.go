package dunlin_test

import (
	"bufio"
	"bytes"
	"strconv"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/suite"
)

// What the suite of all adapters has, by the names that tests of the root have for it.
var (
	readAnswer = suite.ReadAnswer
	methodOf   = suite.MethodOf
	req        = suite.Request
	plain      = suite.Plain
	problem    = suite.Problem
	clip       = suite.Clip

	problem404, problem413, problem500 = suite.Problem404, suite.Problem413, suite.Problem500

	registerParity = suite.Register
	parityCases    = suite.Cases
)

const parityMaxBody = suite.MaxBody

// A parityCase is a request, and its answer as readAnswer renders it.
type parityCase struct {
	name, send, want string
	closes           bool
}

// exchangeRaw is suite.Exchange with the server at addr, by TLS if it speaks that.
func exchangeRaw(t *testing.T, addr string, closes bool, raws ...string) (answers []string) {
	t.Helper()
	return suite.ExchangeOn(t, dial(t, addr), closes, raws...)
}

// answered reads one answer to GET, which must have the status and the body.
func answered(t *testing.T, br *bufio.Reader, status int, body string) {
	t.Helper()
	got, err := readAnswer(br, "GET")
	if err != nil {
		t.Fatalf("instead of %d %q: %v", status, body, err)
	}
	head, gotBody, _ := bytes.Cut([]byte(got), []byte("\n\n"))
	if string(head[9:12]) != strconv.Itoa(status) || string(gotBody) != body {
		t.Fatalf("answered with\n%s\nwant %d %q", got, status, body)
	}
}
