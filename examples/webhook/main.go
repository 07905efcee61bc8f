// Command webhook receives webhooks: it checks the signature, the age and the ID of a message by the rules of Standard Webhooks
// (https://www.standardwebhooks.com).
//
//	WEBHOOK_SECRET=whsec_c2VjcmV0c2VjcmV0c2VjcmV0 go run ./examples/webhook
package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"log"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// maxAge is the maximum age of a message. An older message may be a copy that an attacker has recorded.
const maxAge = 5 * time.Minute

func main() {
	secret, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(os.Getenv("WEBHOOK_SECRET"), "whsec_"))
	if err != nil || len(secret) == 0 {
		log.Fatal("WEBHOOK_SECRET must be whsec_ and a secret in base64")
	}
	if err := newApp(dunlin.Config{Addr: "127.0.0.1:3000"}, secret).Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func newApp(config dunlin.Config, secret []byte) *dunlin.App {
	app := dunlin.New(config)
	app.Post("/hooks", dunlin.Try(func(r *dunlin.Request) (dunlin.Response, error) {
		body, err := r.Bytes() // the bytes as sent, which the signature covers
		if err != nil {
			return dunlin.Response{}, err
		}
		id, at := r.Header("Webhook-Id"), r.Header("Webhook-Timestamp")
		seconds, err := strconv.ParseInt(at, 10, 64)
		if age := time.Since(time.Unix(seconds, 0)).Abs(); err != nil || age > maxAge || !signed(secret, id, at, body, r.Header("Webhook-Signature")) {
			return dunlin.Problem(&dunlin.ProblemDetails{Status: 401, Detail: "the signature or the time of the message is wrong"}), nil
		}
		log.Printf("message %s: %s", id, body) // a message may arrive twice: a real service remembers the IDs of handled messages
		return dunlin.NoContent(), nil
	}))
	return app
}

// signed reports whether one of the signatures, separated by spaces, is valid for the message. The comparison takes constant
// time.
func signed(secret []byte, id, at string, body []byte, signatures string) bool {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(id + "." + at + "."))
	mac.Write(body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for s := range strings.FieldsSeq(signatures) {
		if hmac.Equal([]byte(s), []byte(want)) {
			return true
		}
	}
	return false
}
