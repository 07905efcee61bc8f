package webhook_test

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/store"
	"github.com/dunlinhttp/dunlin/webhook"
)

// The test vector of the reference implementations.
const (
	secret    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	messageID = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	payload   = `{"test": 2432232314}`
)

var sentAt = time.Unix(1614265330, 0)

const other = "v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc="

func verifier(now time.Time, secrets ...string) *webhook.Verifier {
	return webhook.New(webhook.Config{Secrets: secrets, Now: func() time.Time { return now }})
}

func TestVerify(t *testing.T) {
	const at = "1614265330"
	for name, c := range map[string]struct {
		id, timestamp, signatures, body string
		now                             time.Time
		want                            error
	}{
		"test vector":                    {messageID, at, signature, payload, sentAt, nil},
		"one of several":                 {messageID, at, other + " v2,x " + signature + " " + other, payload, sentAt, nil},
		"five minutes late":              {messageID, at, signature, payload, sentAt.Add(5 * time.Minute), nil},
		"five minutes early":             {messageID, at, signature, payload, sentAt.Add(-5 * time.Minute), nil},
		"too old":                        {messageID, at, signature, payload, sentAt.Add(301 * time.Second), webhook.ErrExpired},
		"too new":                        {messageID, at, signature, payload, sentAt.Add(-301 * time.Second), webhook.ErrExpired},
		"no ID":                          {"", at, signature, payload, sentAt, webhook.ErrMalformed},
		"no timestamp":                   {messageID, "", signature, payload, sentAt, webhook.ErrMalformed},
		"no signature":                   {messageID, at, "", payload, sentAt, webhook.ErrMalformed},
		"signed timestamp":               {messageID, "+" + at, signature, payload, sentAt, webhook.ErrMalformed},
		"huge timestamp":                 {messageID, "99999999999999999999", signature, payload, sentAt, webhook.ErrMalformed},
		"ID with a full stop":            {messageID + ".1", at, signature, payload, sentAt, webhook.ErrMalformed},
		"other ID":                       {"msg_1", at, signature, payload, sentAt, webhook.ErrSignature},
		"other timestamp":                {messageID, "1614265331", signature, payload, sentAt, webhook.ErrSignature},
		"zero before the time":           {messageID, "0" + at, signature, payload, sentAt, webhook.ErrSignature},
		"other body":                     {messageID, at, signature, payload + " ", sentAt, webhook.ErrSignature},
		"other signature":                {messageID, at, other, payload, sentAt, webhook.ErrSignature},
		"empty signature":                {messageID, at, "v1,", payload, sentAt, webhook.ErrSignature},
		"part of the signature":          {messageID, at, signature[:20], payload, sentAt, webhook.ErrSignature},
		"longer signature":               {messageID, at, "v1," + strings.Repeat("A", 400), payload, sentAt, webhook.ErrSignature},
		"other version":                  {messageID, at, "v1a" + signature[2:], payload, sentAt, webhook.ErrSignature},
		"after sixteen other signatures": {messageID, at, strings.Repeat(other+" ", 16) + signature, payload, sentAt, webhook.ErrSignature},
		"without the version":            {messageID, at, signature[3:], payload, sentAt, webhook.ErrSignature},
		"separated by two spaces":        {messageID, at, "  " + signature, payload, sentAt, nil},
	} {
		if err := verifier(c.now, secret).Verify(c.id, c.timestamp, c.signatures, []byte(c.body)); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	if err := verifier(sentAt, strings.TrimPrefix(secret, "whsec_")).Verify(messageID, at, signature, []byte(payload)); err != nil {
		t.Errorf("secret without prefix: %v", err)
	}
}

func TestSign(t *testing.T) {
	h := http.Header{}
	if err := webhook.Sign(h, messageID, sentAt, []byte(payload), secret); err != nil || h.Get("webhook-signature") != signature {
		t.Errorf("%v: got %v", err, h)
	}
	for name, err := range map[string]error{
		"no secret":   webhook.Sign(h, "a", sentAt, nil),
		"ID":          webhook.Sign(h, "a.b", sentAt, nil, secret),
		"public key":  webhook.Sign(h, "a", sentAt, nil, "whpk_"+base64.StdEncoding.EncodeToString(make([]byte, 32))),
		"short":       webhook.Sign(h, "a", sentAt, nil, "whsec_AAAA"),
		"not base 64": webhook.Sign(h, "a", sentAt, nil, "whsec_%"),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		} else if strings.Contains(err.Error(), "AAAA") {
			t.Errorf("%s: the error contains the secret: %v", name, err)
		}
	}
}

// Keys of both kinds, and their rotation: one signature by a known key is enough.
func TestRotation(t *testing.T) {
	seed := []byte("0123456789abcdef0123456789abcdef")
	private := "whsk_" + base64.StdEncoding.EncodeToString(seed)
	public := "whpk_" + base64.StdEncoding.EncodeToString(ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey))
	const next = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	for name, c := range map[string]struct {
		sign, verify []string
		want         error
	}{
		"old and new to old": {[]string{secret, next}, []string{secret}, nil},
		"old and new to new": {[]string{secret, next}, []string{next}, nil},
		"new to both":        {[]string{next}, []string{secret, next}, nil},
		"old to new":         {[]string{secret}, []string{next}, webhook.ErrSignature},
		"ed25519":            {[]string{private}, []string{public}, nil},
		"both kinds":         {[]string{secret, private}, []string{public}, nil},
		"ed25519 to shared":  {[]string{private}, []string{secret}, webhook.ErrSignature},
		"shared to ed25519":  {[]string{secret}, []string{public}, webhook.ErrSignature},
	} {
		h := http.Header{}
		if err := webhook.Sign(h, "msg_1", sentAt, []byte("{}"), c.sign...); err != nil {
			t.Fatal(err)
		}
		err := verifier(sentAt, c.verify...).Verify("msg_1", h.Get(webhook.HeaderTimestamp), h.Get(webhook.HeaderSignature), []byte("{}"))
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}

func TestNewPanics(t *testing.T) {
	for name, c := range map[string]webhook.Config{
		"no secret":   {},
		"empty":       {Secrets: []string{""}},
		"prefix only": {Secrets: []string{"whsec_"}},
		"private key": {Secrets: []string{"whsk_" + base64.StdEncoding.EncodeToString(make([]byte, 32))}},
		"negative":    {Secrets: []string{secret}, Tolerance: -1},
		"forgetful":   {Secrets: []string{secret}, Remember: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if v := recover(); v == nil || strings.Contains(fmt.Sprint(v), secret) {
					t.Errorf("got %v", v)
				}
			}()
			webhook.New(c)
		})
	}
}

// hook sends a webhook, signed now.
func hook(app *dunlin.App, id, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", "/hooks", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	if err := webhook.Sign(r.Header, id, time.Now(), []byte(body), secret); err != nil {
		panic(err)
	}
	w := httptest.NewRecorder()
	app.ServeHTTP(w, r)
	return w
}

func newApp(s store.Store, act dunlin.Action) *dunlin.App {
	app := dunlin.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler)})
	app.Post("/hooks", act, webhook.New(webhook.Config{Secrets: []string{secret}, Store: s}).Middleware())
	return app
}

func Example() {
	hooks := webhook.New(webhook.Config{
		Secrets: []string{secret},
		Store:   store.NewMemory(store.MemoryConfig{}),
	})
	app := dunlin.New(dunlin.Config{})
	app.Post("/hooks", func(r *dunlin.Request) dunlin.Response {
		event, err := dunlin.Decode[struct{ Type string }](r)
		if err != nil {
			return dunlin.Error(err)
		}
		fmt.Println("received", event.Type)
		return dunlin.NoContent()
	}, hooks.Middleware())

	fmt.Println(hook(app, "msg_1", `{"type":"invoice.paid"}`).Code)
	fmt.Println(hook(app, "msg_1", `{"type":"invoice.paid"}`).Code, "again")
	// Output:
	// received invoice.paid
	// 204
	// 204 again
}

func TestMiddleware(t *testing.T) {
	app := newApp(nil, func(r *dunlin.Request) dunlin.Response {
		body, err := r.Bytes()
		if err != nil {
			return dunlin.Error(err)
		}
		return dunlin.Text(string(body)).Status(202)
	})
	if w := hook(app, "msg_1", "{}"); w.Code != 202 || w.Body.String() != "{}" {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	for name, c := range map[string]struct {
		edit func(http.Header)
		want int
	}{
		"no headers":      {func(h http.Header) { clear(h) }, 400},
		"old":             {func(h http.Header) { h.Set("webhook-timestamp", "1614265330") }, 403},
		"other signature": {func(h http.Header) { h.Set("webhook-signature", other) }, 403},
	} {
		r := httptest.NewRequest("POST", "/hooks", strings.NewReader("{}"))
		if err := webhook.Sign(r.Header, "msg_1", time.Now(), []byte("{}"), secret); err != nil {
			t.Fatal(err)
		}
		c.edit(r.Header)
		w := httptest.NewRecorder()
		if app.ServeHTTP(w, r); w.Code != c.want || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: got %d %s", name, w.Code, w.Body)
		}
	}
}

func TestWebhooksRunOnce(t *testing.T) {
	status, ran := 500, 0
	var app *dunlin.App
	app = newApp(store.NewMemory(store.MemoryConfig{}), func(*dunlin.Request) dunlin.Response {
		ran++
		switch status {
		case 0:
			panic("broken")
		case 202:
			if w := hook(app, "msg_1", "{}"); w.Code != 409 { // repetition during the first run
				t.Errorf("repetition during the first run: got %d", w.Code)
			}
		}
		return dunlin.Empty().Status(status)
	})
	again := func(want int) {
		t.Helper()
		if w := hook(app, "msg_1", "{}"); w.Code != want {
			t.Errorf("got got %d, want %d", w.Code, want)
		}
	}
	again(500)
	status = 0
	again(500) // of the panic
	status = 202
	again(202)
	if before := ran; hook(app, "msg_1", "{}").Code != 204 || ran != before {
		t.Errorf("the action ran again")
	}
	status = 200
	if w := hook(app, "msg_2", "{}"); w.Code != 200 {
		t.Errorf("other webhook: got %d", w.Code)
	}
}

// The status of a stream or a file is known when it has been sent.
func TestFailuresOfStreamsAreRepeated(t *testing.T) {
	fail := func(io.Writer) error { return errors.New("broken") }
	for name, c := range map[string]struct {
		resp  dunlin.Response
		first int
		ok    bool
	}{
		"stream that fails":      {dunlin.Stream("text/plain", fail), 500, false},
		"file that is not there": {dunlin.File("testdata/no-such-file"), 404, false},
		"stream":                 {dunlin.Stream("text/plain", func(io.Writer) error { return nil }), 200, true},
	} {
		ran := 0
		app := newApp(store.NewMemory(store.MemoryConfig{}), func(*dunlin.Request) dunlin.Response {
			ran++
			return c.resp
		})
		if w := hook(app, "msg_1", "{}"); w.Code != c.first {
			t.Errorf("%s: got %d, want %d", name, w.Code, c.first)
		}
		if again := hook(app, "msg_1", "{}"); (again.Code == 204) != c.ok || (ran == 1) != c.ok {
			t.Errorf("%s: got %d for the repetition, which ran %d times", name, again.Code, ran)
		}
	}
}

type brokenStore struct{ store.Store }

func (brokenStore) Set(context.Context, string, []byte, store.Version, time.Duration) (store.Version, error) {
	return 0, store.ErrUnavailable
}

func TestUnavailableStore(t *testing.T) {
	app := newApp(brokenStore{}, func(*dunlin.Request) dunlin.Response {
		t.Error("the action ran")
		return dunlin.NoContent()
	})
	if w := hook(app, "msg_1", "{}"); w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Errorf("got %d %v", w.Code, w.Header())
	}
}
