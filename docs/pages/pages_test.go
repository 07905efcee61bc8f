package pages

import (
	"log/slog"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// The code of the pages registers without a panic, so its settings are valid.
func TestPages(t *testing.T) {
	for name, page := range map[string]func(*testing.T, *dunlin.App){
		"order":       order,
		"accesslog":   accessLog,
		"auth":        basicAndKeyAuth,
		"cache":       responseCache,
		"changes":     changes,
		"cors":        pagesOfOtherOrigins,
		"under":       corsOfAGroup,
		"etag":        tags,
		"idempotency": idempotencyKeys,
		"outgoing":    otherServers,
		"ratelimit":   rateLimits,
		"requestid":   requestIDs,
		"security":    security,
		"sessions":    sessionsOfClients,
		"static":      staticFiles,
		"store":       ownState,
		"content":     content,
		"webhooks":    webhooks,
		"templates":   htmlPages,
		"problems":    problemsAsPages,
		"formatted":   formattedAsPages,
		"envelope":    problemFormat,
		"violations":  violationsInAFormat,
		"typed":       typedActions,
		"two ways in": twoWaysIn,
		"deploy":      tlsSettings,
		"files":       filesOfUsers,
		"parts":       checkedParts,
		"events":      eventsOfAStore,
		"handlers":    standardHandlers,
	} {
		t.Run(name, func(t *testing.T) {
			page(t, dunlin.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler)}))
		})
	}
}

// A value that is changed in two directions is two values.
func TestModifiersBranch(t *testing.T) {
	v := "hello"
	r1 := dunlin.JSON(v)
	r2 := r1.Header("A", "1")
	r3 := r1.Header("B", "2") // must not see A
	if r2.Get("A") != "1" || r3.Get("A") != "" || r3.Get("B") != "2" {
		t.Errorf("got %v, %v", r2, r3)
	}
}

func hello(*dunlin.Request) dunlin.Response { return dunlin.Text("hello") }
