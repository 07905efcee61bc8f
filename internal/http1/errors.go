package http1

import "fmt"

// Error is the reason why a message was refused. It is a small comparable value: errors with the same reason and position are equal.
// After an Error the position of the next message is unknown. Therefore the caller must close the connection after the answer.
type Error struct {
	problem problem
	part    part
	char    byte
	offset  int64
	limit   int64 // the limit that was exceeded, or 0 if the problem is not a limit
}

// Status returns the HTTP status code of the answer.
func (e Error) Status() int { return int(problems[e.problem].status) }

// Offset returns the position of the problem, in bytes from the start of the request head or of the chunked body.
func (e Error) Offset() int64 { return e.offset }

// Error describes the problem and its position. The text quotes at most one byte of the input, in hex, so that it is safe to send
// and to log.
func (e Error) Error() string {
	p := problems[e.problem]
	if e.limit > 0 {
		return fmt.Sprintf("%s (the limit is %d) at byte %d of the %s", p.text, e.limit, e.offset, e.part)
	}
	if p.withByte {
		return fmt.Sprintf("%s 0x%02X at byte %d of the %s", p.text, e.char, e.offset, e.part)
	}
	return fmt.Sprintf("%s at byte %d of the %s", p.text, e.offset, e.part)
}

// part is the part of a message to which an offset refers.
type part uint8

const (
	inHead part = iota
	inChunked
)

func (p part) String() string {
	if p == inChunked {
		return "chunked body"
	}
	return "request head"
}

// A problem is a reason to refuse a message. 0 means no problem.
type problem uint8

const (
	noProblem problem = iota

	// Problems of lines.
	bareCR
	bareLF
	emptyLine
	headTooLarge
	tooManyFields

	// Problems of the request line.
	badMethod
	methodTooLong
	badTarget
	fragmentInTarget
	badEscape
	badScheme
	badAuthority
	asteriskWithoutOptions
	connectWithoutAuthority
	targetTooLong
	extraSpace
	missingVersion
	badVersion
	unsupportedVersion

	// Problems of field lines.
	emptyFieldName
	badFieldName
	spaceBeforeColon
	missingColon
	foldedField
	controlInValue

	// Problems of fields that affect framing or routing.
	missingHost
	repeatedHost
	badHost
	badContentLength
	repeatedContentLength
	contentLengthOverflow
	lengthAndChunked
	codingInHTTP10
	repeatedTransferEncoding
	chunkedNotFinal
	unknownCoding
	unknownExpectation

	// Problems of chunked bodies.
	badChunkSize
	chunkTooLarge
	controlInExtension
	extensionTooLong
	tooManyChunks
	missingChunkCRLF
	bodyTooLarge
	trailerTooLarge
	forbiddenTrailer
)

// problems maps each problem to its status and its text. withByte marks a problem whose text contains the byte at which it occurred.
var problems = [...]struct {
	status   uint16
	withByte bool
	text     string
}{
	bareCR:        {400, false, "bare CR"},
	bareLF:        {400, false, "bare LF"},
	emptyLine:     {400, false, "more than one empty line before the request"},
	headTooLarge:  {431, false, "head too large"},
	tooManyFields: {431, false, "too many fields"},

	badMethod:               {400, true, "invalid method byte"},
	methodTooLong:           {501, false, "method too long"},
	badTarget:               {400, true, "invalid target byte"},
	fragmentInTarget:        {400, false, "fragment in the target"},
	badEscape:               {400, false, "malformed percent escape in the path"},
	badScheme:               {400, false, "target is neither a path nor an http or https URI"},
	badAuthority:            {400, false, "invalid authority in the target"},
	asteriskWithoutOptions:  {400, false, "target * without OPTIONS"},
	connectWithoutAuthority: {400, false, "CONNECT without host:port"},
	targetTooLong:           {414, false, "target too long"},
	extraSpace:              {400, false, "extra space in the request line"},
	missingVersion:          {400, false, "missing HTTP version"},
	badVersion:              {400, false, "malformed HTTP version"},
	unsupportedVersion:      {505, false, "unsupported HTTP version"},

	emptyFieldName:   {400, false, "empty field name"},
	badFieldName:     {400, true, "invalid field name byte"},
	spaceBeforeColon: {400, false, "space in a field name or before its colon"},
	missingColon:     {400, false, "field line without a colon"},
	foldedField:      {400, false, "folded field line"},
	controlInValue:   {400, true, "control byte in a field value"},

	missingHost:              {400, false, "missing Host"},
	repeatedHost:             {400, false, "repeated Host"},
	badHost:                  {400, false, "invalid Host"},
	badContentLength:         {400, false, "malformed Content-Length"},
	repeatedContentLength:    {400, false, "repeated Content-Length"},
	contentLengthOverflow:    {400, false, "Content-Length overflows 63 bits"},
	lengthAndChunked:         {400, false, "Content-Length together with Transfer-Encoding"},
	codingInHTTP10:           {400, false, "Transfer-Encoding in HTTP/1.0"},
	repeatedTransferEncoding: {400, false, "repeated Transfer-Encoding"},
	chunkedNotFinal:          {400, false, "Transfer-Encoding is not a single final chunked"},
	unknownCoding:            {501, false, "unknown transfer coding"},
	unknownExpectation:       {417, false, "expectation other than 100-continue"},

	badChunkSize:       {400, true, "invalid chunk size byte"},
	chunkTooLarge:      {400, false, "chunk size overflows 63 bits"},
	controlInExtension: {400, true, "control byte in a chunk extension"},
	extensionTooLong:   {400, false, "chunk extensions too long"},
	tooManyChunks:      {400, false, "too many small chunks"},
	missingChunkCRLF:   {400, false, "missing CRLF after chunk data"},
	bodyTooLarge:       {413, false, "body too large"},
	trailerTooLarge:    {431, false, "trailer section too large"},
	forbiddenTrailer:   {400, false, "field not allowed in a trailer"},
}
