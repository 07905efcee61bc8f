package peer

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/dunlinhttp/dunlin/bench/peers/service"
)

// UserID is the ID of the user in the scenario param.
const UserID = "8e605ad7-554a-450d-a72d-d0098d336e8e"

// A Check is a request and the response of the reference service to it. A peer with another response would do different work,
// so that a comparison with it would be meaningless.
type Check struct {
	Name         string
	Method, Path string
	Body         []byte
	ContentType  string // media type of the response, without parameters, and of the request if it has a body
	CacheControl string
	Want         []byte
	AtLeast      time.Duration

	// rows checks responses that differ between requests. If it is set, it sends its own requests, and the fields that describe
	// a request are not used.
	rows            func(ctx context.Context, a asker, rows Rows) error
	WithoutDatabase bool // rows needs no database
}

// Checks has all checks. Scenarios name the checks that they require.
var Checks = append(fixed, rowChecks...)

var fixed = []Check{
	{Name: "plaintext", Path: "/plaintext", ContentType: "text/plain", Want: []byte(service.Greeting)},
	{Name: "json", Path: "/json", ContentType: "application/json", Want: jsonOf(service.Message{Message: service.Greeting})},
	{Name: "param", Path: "/users/" + UserID, ContentType: "text/plain", Want: []byte(UserID)},
	{
		Name: "action", Path: "/users/" + UserID + "/edit", ContentType: "application/json",
		Want: jsonOf(service.UserAction{ID: UserID, Action: "edit"}),
	},
	echoOf("echo", 1<<10),
	echoOf("echo-large", 64<<10),
	{Name: "users", Path: "/api/v1/users", ContentType: "application/json", Want: jsonOf(service.Users())},
	{
		Name: "headers", Path: "/headers", ContentType: "text/plain", CacheControl: service.CacheControl,
		Want: []byte(service.Bucket),
	},
	{Name: "sleep", Path: "/sleep?ms=10", AtLeast: 10 * time.Millisecond},
	{Name: "paths", Path: "/paths/0/1/2/3/", ContentType: "text/plain", Want: []byte(service.Greeting)},
	{Name: "health", Path: "/healthz"},
}

func jsonOf(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

func echoOf(name string, size int) Check {
	body := bytes.Repeat([]byte("dunlin "), size/7+1)[:size]
	return Check{
		Name: name, Method: http.MethodPost, Path: "/echo", Body: body,
		ContentType: "application/octet-stream", Want: body,
	}
}

// checkTimeout is the time limit for one response, on a machine under load.
const checkTimeout = 10 * time.Second

// Do sends the request to the server at addr and returns an error if the response is wrong. scheme is http or https.
func (c Check) Do(ctx context.Context, client *http.Client, scheme, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, c.Method, scheme+"://"+addr+c.Path, bytes.NewReader(c.Body))
	if err != nil {
		return err
	}
	if len(c.Body) > 0 {
		request.Header.Set("Content-Type", c.ContentType)
	}
	start := time.Now()
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return fmt.Errorf("%s: read the body: %w", c.Path, err)
	}
	return c.judge(answer, body, time.Since(start))
}

func (c Check) judge(answer *http.Response, body []byte, took time.Duration) error {
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: status %d", c.Path, answer.StatusCode)
	}
	if c.ContentType != "" {
		got, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
		if err != nil || got != c.ContentType {
			return fmt.Errorf("%s: Content-Type %q, want %s", c.Path, answer.Header.Get("Content-Type"), c.ContentType)
		}
	}
	if c.CacheControl != "" && answer.Header.Get("Cache-Control") != c.CacheControl {
		return fmt.Errorf("%s: Cache-Control %q, want %s", c.Path, answer.Header.Get("Cache-Control"), c.CacheControl)
	}
	if took < c.AtLeast {
		return fmt.Errorf("%s: answered after %v, want at least %v", c.Path, took, c.AtLeast)
	}
	if c.ContentType == "application/json" {
		// Encoder of encoding/json ends its output with a newline, and so do servers that use it.
		body = bytes.TrimSuffix(body, []byte("\n"))
	}
	if c.Want != nil && !bytes.Equal(body, c.Want) {
		return fmt.Errorf("%s: %s", c.Path, firstDifference(body, c.Want))
	}
	return nil
}

func firstDifference(got, want []byte) string {
	at := 0
	for at < len(got) && at < len(want) && got[at] == want[at] {
		at++
	}
	excerpt := func(b []byte) string {
		b = b[min(max(at-10, 0), len(b)):min(at+20, len(b))]
		return strings.ToValidUTF8(string(b), "?")
	}
	return fmt.Sprintf("a body of %d bytes, want %d; at byte %d %q, want %q",
		len(got), len(want), at, excerpt(got), excerpt(want))
}

// Verify runs the checks that p is expected to pass, and returns the errors by the name of the check. If rows is nil, the run
// has no database, and Verify omits the checks that need one.
func Verify(ctx context.Context, p Peer, addr string, rows Rows) (map[string]string, error) {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	if p.H2 {
		transport.Protocols = new(http.Protocols)
		transport.Protocols.SetHTTP2(p.TLS)
		transport.Protocols.SetUnencryptedHTTP2(!p.TLS)
	}
	client := &http.Client{Transport: transport}
	scheme := "http"
	if p.TLS {
		scheme = "https"
	}
	defer client.CloseIdleConnections()
	failed := map[string]string{}
	for _, check := range Checks {
		if !p.Serves(check.Name) || check.rows != nil && rows == nil && !check.WithoutDatabase {
			continue
		}
		if p.Untyped {
			check.ContentType = ""
		}
		var err error
		if check.rows != nil {
			err = check.rows(ctx, asker{client, scheme + "://" + addr}, rows)
		} else {
			err = check.Do(ctx, client, scheme, addr)
		}
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			failed[check.Name] = err.Error()
		}
	}
	return failed, nil
}
