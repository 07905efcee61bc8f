// Package webhook verifies and signs webhooks by Standard Webhooks (https://www.standardwebhooks.com).
// A webhook has the headers webhook-id, webhook-timestamp and webhook-signature. Signatures are by
// HMAC-SHA256 (v1) or Ed25519 (v1a).
//
//	hooks := webhook.New(webhook.Config{Secrets: []string{os.Getenv("WEBHOOK_SECRET")}, Store: st})
//	app.Post("/hooks/payments", received, hooks.Middleware())
//
// The action reads the body as usual. Senders repeat a webhook until the answer is 2xx. With a store,
// an action that has answered 2xx does not run again for the same webhook: repetitions are answered
// with 204.
//
// Files: verify.go verifies signatures, middleware.go has the middleware, replay.go remembers IDs, sign.go
// signs webhooks to send.
package webhook
