package ws

import (
	"encoding/binary"
	"unicode/utf8"
)

// A Code is a close code (RFC 6455, section 7.4, and the IANA registry).
type Code uint16

const (
	Normal          Code = 1000
	GoingAway       Code = 1001
	ProtocolError   Code = 1002
	Unsupported     Code = 1003
	NoStatus        Code = 1005 // never sent: the close frame contained no code
	Abnormal        Code = 1006 // never sent: the connection ended without a close frame
	InvalidPayload  Code = 1007
	PolicyViolation Code = 1008
	TooBig          Code = 1009
	InternalError   Code = 1011
	Restart         Code = 1012
	TryAgainLater   Code = 1013
)

// Sendable reports whether the code may be in a close frame.
func (c Code) Sendable() bool {
	switch {
	case c < 1000 || c >= 5000:
		return false
	case c < 1016:
		return c != 1004 && c != NoStatus && c != Abnormal && c != 1015
	}
	return c >= 3000
}

// An Error is a violation of the protocol by the peer, with the code for the close frame.
type Error struct {
	Code   Code
	Reason string // at most MaxReason bytes
}

func (e *Error) Error() string { return "websocket: " + e.Reason }

var (
	errReserved        = &Error{ProtocolError, "reserved bit set in frame header"}
	errOpcode          = &Error{ProtocolError, "reserved opcode"}
	errControlFragment = &Error{ProtocolError, "fragmented control frame"}
	errControlLength   = &Error{ProtocolError, "control frame longer than 125 bytes"}
	errUnmasked        = &Error{ProtocolError, "client frame without a mask"}
	errLength          = &Error{ProtocolError, "invalid encoding of the payload length"}
	errCloseLength     = &Error{ProtocolError, "close frame of one byte"}
	errCloseCode       = &Error{ProtocolError, "invalid close code"}
	errCloseReason     = &Error{InvalidPayload, "close reason is not UTF-8"}
	errDeflate         = &Error{InvalidPayload, "invalid compressed message"}
)

// MaxReason is the maximum length of the reason in a close frame, in bytes.
const MaxReason = MaxControl - 2

// ParseClose parses the payload of a close frame. If the payload is empty, the code is NoStatus.
func ParseClose(payload []byte) (Code, string, error) {
	switch len(payload) {
	case 0:
		return NoStatus, "", nil
	case 1:
		return 0, "", errCloseLength
	}
	code := Code(binary.BigEndian.Uint16(payload))
	if !code.Sendable() {
		return 0, "", errCloseCode
	}
	if !utf8.Valid(payload[2:]) {
		return 0, "", errCloseReason
	}
	return code, string(payload[2:]), nil
}

// AppendClose appends a close frame. If the code must not be sent, the frame has no payload. A reason that is too long is
// truncated between two characters.
func AppendClose(b []byte, code Code, reason string) []byte {
	if !code.Sendable() {
		return AppendHeader(b, Close, true, false, 0)
	}
	if len(reason) > MaxReason {
		n := MaxReason
		for n > 0 && !utf8.RuneStart(reason[n]) {
			n--
		}
		reason = reason[:n]
	}
	b = AppendHeader(b, Close, true, false, 2+len(reason))
	return append(binary.BigEndian.AppendUint16(b, uint16(code)), reason...)
}
