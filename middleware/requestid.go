package middleware

import (
	"net/http"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// maxRequestID is the maximum length of a client's request ID, in bytes. It has room for the common
// formats (UUIDs, ULIDs, trace contexts), and prevents flooded logs.
const maxRequestID = 128

// RequestID gives each request an ID, which correlates its log lines across services. The ID is the
// value of the given request header if that has 1 to 128 bytes of visible ASCII. Otherwise Dunlin
// makes a unique one, which is not secret. [dunlin.Request.ID] returns the ID. The response header
// of the same name has it, unless the action has set that header.
//
// Clients can send any ID: it proves nothing. RequestID panics when header is not a valid name of a
// response header.
func RequestID(header string) dunlin.Middleware {
	answer := dunlin.NewIDHeader(header) // panics with the reason
	// net/http has only this spelling. The conversion here saves one per request.
	i := &requestID{header: http.CanonicalHeaderKey(header), answer: answer}
	return i.around
}

// A requestID is the state of a RequestID.
type requestID struct {
	header string // canonical
	answer *dunlin.IDHeader
	joints
}

func (i *requestID) around(next dunlin.Action) dunlin.Action { return around(next, edgeParts{id: i}) }

// look adopts the client's ID.
func (i *requestID) look(r *dunlin.Request) { inside.TakeID(i.answer, r, maxRequestID) }

// SendRequestID returns the policy that sends the ID with every response of the app, including
// those that no middleware sees: late responses, refusals by a limit, and responses to unreadable
// requests. Use the middleware as well: the policy adopts the client's ID only if the request has
// none yet, and a logged panic or a late action has given it one:
//
//	app.Policy(middleware.SendRequestID("X-Request-ID"))
func SendRequestID(header string) dunlin.Policy {
	dunlin.NewHeaderBlock(header, "") // panics with the reason
	header = http.CanonicalHeaderKey(header)
	return func(info *dunlin.AnswerInfo, resp dunlin.Response) dunlin.Response {
		if resp.Get(header) != "" {
			return resp
		}
		if id := info.Header(header); saneID(id) {
			info.SetID(id)
		}
		return resp.Header(header, info.ID())
	}
}

// saneID reports whether a client's ID is safe in logs and headers.
func saneID(id string) bool {
	return id != "" && len(id) <= maxRequestID && exchange.Visible(id)
}
