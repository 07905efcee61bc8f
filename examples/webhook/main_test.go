package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
)

func TestWebhook(t *testing.T) {
	secret := []byte("secretsecretsecret")
	client := dunlintest.NewClient(newApp(dunlin.Config{}, secret))
	for name, c := range map[string]struct {
		sent string // the body, if not the signed one
		age  time.Duration
		want int
	}{"genuine": {"{}", 0, 204}, "changed": {`{"a":1}`, 0, 401}, "old": {"{}", time.Hour, 401}, "from the future": {"{}", -time.Hour, 401}} {
		at := fmt.Sprint(time.Now().Add(-c.age).Unix())
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte("msg_1." + at + ".{}"))
		r, err := http.NewRequest("POST", "http://h.example/hooks", strings.NewReader(c.sent))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Webhook-Id", "msg_1")
		r.Header.Set("Webhook-Timestamp", at)
		r.Header.Set("Webhook-Signature", "v1,b2xk v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("%s: got %s, want %d", name, resp.Status, c.want)
		}
	}
}
