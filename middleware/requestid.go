package middleware

import (
	"net/http"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// maxRequestID is the maximum length of a client's request ID, in bytes. It is enough for the common
// formats (UUIDs, ULIDs, trace contexts), and keeps log lines short.
const maxRequestID = 128

// RequestID gives each request an ID, which correlates its log lines across services. If the given
// request header has 1 to 128 bytes of visible ASCII, its value is the ID. Otherwise Dunlin makes a
// unique ID, which is not secret. [dunlin.Request.ID] returns the ID. Each answer has the ID in the header
// of the same name, unless the action has set that header.
//
//	app.Install(middleware.RequestID("X-Request-ID"))
//
// Clients can send any ID, so an ID proves nothing. RequestID panics if header is not a valid name of a
// response header.
func RequestID(header string) dunlin.Feature {
	answer, err := exchange.NewIDHeader(header)
	if err != nil {
		panic("middleware: RequestID: " + err.Error())
	}
	// net/http has only the canonical spelling. The conversion here saves a conversion for each request.
	i := &requestID{header: http.CanonicalHeaderKey(header), answer: answer}
	return edgeParts{id: i}.feature(i.send)
}

// A requestID is the state of a RequestID.
type requestID struct {
	header string // canonical
	answer *exchange.IDHeader
	joints
}

// adopt makes a valid ID of the client the ID of the request.
func (i *requestID) adopt(r *dunlin.Request) { inside.TakeID(i.answer, r, maxRequestID) }

// send adds the ID to an answer. It adopts the client's ID only if the request has no ID yet. The request may have an ID,
// because a panic was logged, or because the action has asked for it.
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
