package middleware

import (
	"net/http"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// maxRequestID is the longest request ID, in bytes, that is taken over from a
// client: room for every format in use (UUIDs, ULIDs, trace contexts), too little
// to fill logs with.
const maxRequestID = 128

// RequestID gives requests an ID by which the log lines of one request can be found across
// services. It is the value of the given request header, if that is 1 to 128 bytes of visible
// ASCII, and else the one that Dunlin makes, which is unique but no secret. [dunlin.Request.ID]
// returns it, and the response header of the same name has it, unless the action has set that itself.
//
// The client may send what it likes: an ID correlates log lines and proves nothing. RequestID
// panics when header may not be the name of a response header.
func RequestID(header string) dunlin.Middleware {
	answer := dunlin.NewIDHeader(header) // panics, naming what is wrong
	// net/http knows no other spelling: changing it here spares that each time.
	i := &requestID{header: http.CanonicalHeaderKey(header), answer: answer}
	return i.around
}

// A requestID is what RequestID goes by.
type requestID struct {
	header string // canonical
	answer *dunlin.IDHeader
	joints
}

func (i *requestID) around(next dunlin.Action) dunlin.Action { return around(next, edgeParts{id: i}) }

// look takes the client's ID over.
func (i *requestID) look(r *dunlin.Request) { inside.TakeID(i.answer, r, maxRequestID) }

// SendRequestID is the policy that sends the ID with every answer of the app, also those that no
// middleware sees: late ones, those over a limit, and to requests that could not be read. Have the
// middleware as well, since the policy takes the client's ID only if the request has none yet, and
// a logged panic or a late action has given it one:
//
//	app.Policy(middleware.SendRequestID("X-Request-ID"))
func SendRequestID(header string) dunlin.Policy {
	dunlin.NewHeaderBlock(header, "") // panics, naming what is wrong
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

// saneID reports whether a client's ID can stand in logs and headers as it is.
func saneID(id string) bool {
	return id != "" && len(id) <= maxRequestID && exchange.Visible(id)
}
