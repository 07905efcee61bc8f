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
// makes a unique one, which is not secret. [dunlin.Request.ID] returns the ID. Each answer has it in the
// header of the same name, unless the action has set that header.
//
//	app.Install(middleware.RequestID("X-Request-ID"))
//
// Clients can send any ID: it proves nothing. RequestID panics when header is not a valid name of a
// response header.
func RequestID(header string) dunlin.Feature {
	answer, err := exchange.NewIDHeader(header)
	if err != nil {
		panic("middleware: RequestID: " + err.Error())
	}
	// net/http has only this spelling. The conversion here saves one per request.
	i := &requestID{header: http.CanonicalHeaderKey(header), answer: answer}
	return edgeParts{id: i}.feature(i.send)
}

// A requestID is the state of a RequestID.
type requestID struct {
	header string // canonical
	answer *exchange.IDHeader
	joints
}

// adopt adopts the client's ID.
func (i *requestID) adopt(r *dunlin.Request) { inside.TakeID(i.answer, r, maxRequestID) }

// send sends the ID with an answer. It adopts the client's ID only if the request has none yet: a logged panic or a late
// action without this feature has given it one.
func (i *requestID) send(info *dunlin.AnswerInfo, resp dunlin.Response) dunlin.Response {
	if resp.Get(i.header) != "" {
		return resp
	}
	if id := info.Header(i.header); isValidID(id) {
		inside.NameAnswer(info, id)
	}
	return resp.Header(i.header, info.ID())
}

// isValidID reports whether a client's ID is safe in logs and headers.
func isValidID(id string) bool {
	return id != "" && len(id) <= maxRequestID && exchange.Visible(id)
}
