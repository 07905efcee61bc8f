package webhook

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// These are the names of the headers of a webhook.
const (
	HeaderID        = "Webhook-Id"
	HeaderTimestamp = "Webhook-Timestamp"
	HeaderSignature = "Webhook-Signature"
)

// Sign sets the three headers of a webhook to send. Each secret adds a signature: a shared secret ("whsec_") adds a
// signature of version v1, and a private key of Ed25519 ("whsk_") a signature of version v1a. During a rotation of
// secrets, sign with the old and the new secret. id identifies the webhook: a repetition has the same id. The error is
// that of an invalid id or secret. Sign is safe for concurrent use.
func Sign(h http.Header, id string, at time.Time, body []byte, secrets ...string) error {
	if id == "" || len(id) > maxID || strings.Contains(id, ".") {
		return errors.New("webhook: an ID has 1 to 256 bytes, and no full stop")
	}
	if len(secrets) == 0 {
		return errors.New("webhook: there is no secret to sign with")
	}
	timestamp := strconv.FormatInt(at.Unix(), 10)
	var list []string
	for _, text := range secrets {
		k, err := parseKey(text)
		switch {
		case err != nil:
			return errors.New("webhook: secret to sign with: " + err.Error())
		case k.shared != nil:
			list = append(list, "v1,"+base64.StdEncoding.EncodeToString(mac(k.shared, id, timestamp, body)))
		case k.private != nil:
			list = append(list, "v1a,"+base64.StdEncoding.EncodeToString(ed25519.Sign(k.private, signedContent(id, timestamp, body))))
		default:
			return errors.New("webhook: a public key cannot sign")
		}
	}
	h.Set(HeaderID, id)
	h.Set(HeaderTimestamp, timestamp)
	h.Set(HeaderSignature, strings.Join(list, " "))
	return nil
}
