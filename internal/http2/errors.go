package http2

// A Code is an error code (RFC 9113 §7).
type Code uint32

const (
	NoError            Code = 0x0
	ProtocolError      Code = 0x1
	InternalError      Code = 0x2
	FlowControlError   Code = 0x3
	SettingsTimeout    Code = 0x4
	StreamClosed       Code = 0x5
	FrameSizeError     Code = 0x6
	RefusedStream      Code = 0x7
	Cancel             Code = 0x8
	CompressionError   Code = 0x9
	ConnectError       Code = 0xa
	EnhanceYourCalm    Code = 0xb
	InadequateSecurity Code = 0xc
	HTTP11Required     Code = 0xd
)

var codeNames = [...]string{
	"NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED", "FRAME_SIZE_ERROR",
	"REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM", "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
}

// String returns the name of the code in RFC 9113.
func (c Code) String() string {
	if int64(c) < int64(len(codeNames)) {
		return codeNames[c]
	}
	return "an unknown code"
}

// An Error is a violation of the protocol by a client. It is a small comparable value. An Error that [Conn.Next] returns has
// ended the connection. An Error in an Event has ended a stream.
type Error struct {
	problem problem
	reason  Reason // the limit that the client exceeded, if this ended the connection
}

// Code returns the code that is sent to the client.
func (e Error) Code() Code { return problems[e.problem].code }

// Reason returns the limit that the client exceeded, or 0 if the error has another cause.
func (e Error) Reason() Reason { return e.reason }

// Error describes the problem and names the section of the specification. The section belongs to RFC 9113 unless the text
// names another document. The text does not quote the input.
func (e Error) Error() string {
	p := &problems[e.problem]
	if e.problem == tooMuch {
		return p.text + ": " + e.reason.String()
	}
	return p.text + " (" + p.section + ")"
}

// A problem is a reason to end a connection or a stream. 0 means no problem.
type problem uint8

const (
	noProblem problem = iota

	// Problems that end the connection.
	badPreface
	settingsMissing
	frameTooLarge
	wrongLength
	streamZero
	notStreamZero
	idleStream
	evenStream
	oldStream
	pushFromClient
	continuationMissing
	continuationAlone
	paddingTooLong
	badBlock
	blockBomb
	blockTooLarge
	badPush
	badInitialWindow
	badMaxFrame
	badConnectProtocol
	badNoPriorities
	connectionWindow
	connectionWindowFull
	connectionUpdateZero
	badPriorityUpdate
	tooMuch
	inadequateSecurity

	// Problems that end a stream.
	closedStream
	resetStream
	tooManyStreams
	streamWindow
	streamWindowFull
	streamUpdateZero
	dependsOnItself
	priorityLength
	badFieldName
	badFieldValue
	connectionField
	badTE
	pseudoUnknown
	pseudoLate
	pseudoRepeated
	pseudoMissing
	pseudoWithConnect
	pseudoInTrailers
	badScheme
	badPath
	hostDiffers
	repeatedHost
	protocolUnasked
	badLength
	repeatedLength
	lengthDiffers
	trailersWithoutEnd
	forbiddenTrailer
	trailersTooLarge
)

var problems = [...]struct {
	code    Code
	section string
	text    string
}{
	badPreface:           {ProtocolError, "RFC 9113 section 3.4", "missing connection preface"},
	settingsMissing:      {ProtocolError, "RFC 9113 section 3.4", "first frame is not SETTINGS"},
	frameTooLarge:        {FrameSizeError, "RFC 9113 section 4.2", "frame larger than SETTINGS_MAX_FRAME_SIZE"},
	wrongLength:          {FrameSizeError, "RFC 9113 section 4.2", "invalid length for the type of frame"},
	streamZero:           {ProtocolError, "RFC 9113 section 6", "stream frame on stream 0"},
	notStreamZero:        {ProtocolError, "RFC 9113 section 6", "connection frame on a stream other than 0"},
	idleStream:           {ProtocolError, "RFC 9113 section 5.1", "frame on a stream that was never opened"},
	evenStream:           {ProtocolError, "RFC 9113 section 5.1.1", "stream with an even number"},
	oldStream:            {ProtocolError, "RFC 9113 section 5.1.1", "stream with a lower number than an earlier stream"},
	pushFromClient:       {ProtocolError, "RFC 9113 section 8.4", "PUSH_PROMISE from a client"},
	continuationMissing:  {ProtocolError, "RFC 9113 section 6.10", "frame other than CONTINUATION within a field block"},
	continuationAlone:    {ProtocolError, "RFC 9113 section 6.10", "CONTINUATION without HEADERS"},
	paddingTooLong:       {ProtocolError, "RFC 9113 section 6.1", "padding longer than its frame"},
	badBlock:             {CompressionError, "RFC 9113 section 4.3", "field block that cannot be decoded"},
	blockBomb:            {EnhanceYourCalm, "RFC 7541 section 7.3", "field block that expands to many times the size allowed"},
	blockTooLarge:        {EnhanceYourCalm, "RFC 9113 section 10.5.1", "field block larger than the limit"},
	badPush:              {ProtocolError, "RFC 9113 section 6.5.2", "SETTINGS_ENABLE_PUSH neither 0 nor 1"},
	badInitialWindow:     {FlowControlError, "RFC 9113 section 6.5.2", "SETTINGS_INITIAL_WINDOW_SIZE too large"},
	badMaxFrame:          {ProtocolError, "RFC 9113 section 6.5.2", "SETTINGS_MAX_FRAME_SIZE out of range"},
	badConnectProtocol:   {ProtocolError, "RFC 8441 section 3", "SETTINGS_ENABLE_CONNECT_PROTOCOL neither 0 nor 1"},
	badNoPriorities:      {ProtocolError, "RFC 9218 section 2.1", "SETTINGS_NO_RFC7540_PRIORITIES neither 0 nor 1, or changed"},
	connectionWindow:     {FlowControlError, "RFC 9113 section 6.9.1", "DATA exceeds the connection's window"},
	connectionWindowFull: {FlowControlError, "RFC 9113 section 6.9.1", "connection's window exceeds 2^31-1"},
	connectionUpdateZero: {ProtocolError, "RFC 9113 section 6.9", "connection WINDOW_UPDATE with increment 0"},
	badPriorityUpdate:    {ProtocolError, "RFC 9218 section 7.1", "PRIORITY_UPDATE for an invalid stream"},
	inadequateSecurity:   {InadequateSecurity, "RFC 9113 section 9.2.2", "cipher suite that HTTP/2 prohibits"},
	tooMuch:              {EnhanceYourCalm, "RFC 9113 section 10.5", "too many frames that serve no request"},

	closedStream:       {StreamClosed, "RFC 9113 section 5.1", "frame on a stream that its client has closed"},
	resetStream:        {Cancel, "RFC 9113 section 6.4", "stream reset by its client"},
	tooManyStreams:     {RefusedStream, "RFC 9113 section 5.1.2", "more streams than SETTINGS_MAX_CONCURRENT_STREAMS"},
	streamWindow:       {FlowControlError, "RFC 9113 section 6.9.1", "DATA exceeds the stream's window"},
	streamWindowFull:   {FlowControlError, "RFC 9113 section 6.9.1", "stream's window exceeds 2^31-1"},
	streamUpdateZero:   {ProtocolError, "RFC 9113 section 6.9", "stream WINDOW_UPDATE with increment 0"},
	dependsOnItself:    {ProtocolError, "RFC 7540 section 5.3.1", "stream that depends on itself"},
	priorityLength:     {FrameSizeError, "RFC 9113 section 6.3", "PRIORITY of a length other than 5"},
	badFieldName:       {ProtocolError, "RFC 9113 section 8.2.1", "invalid field name"},
	badFieldValue:      {ProtocolError, "RFC 9113 section 8.2.1", "invalid field value"},
	connectionField:    {ProtocolError, "RFC 9113 section 8.2.2", "connection-specific field"},
	badTE:              {ProtocolError, "RFC 9113 section 8.2.2", "TE with a value other than trailers"},
	pseudoUnknown:      {ProtocolError, "RFC 9113 section 8.3", "unknown pseudo-header field"},
	pseudoLate:         {ProtocolError, "RFC 9113 section 8.3", "pseudo-header field after other fields"},
	pseudoRepeated:     {ProtocolError, "RFC 9113 section 8.3", "repeated pseudo-header field"},
	pseudoMissing:      {ProtocolError, "RFC 9113 section 8.3.1", "request without :method, :scheme or :path"},
	pseudoWithConnect:  {ProtocolError, "RFC 9113 section 8.5", "CONNECT with :scheme or :path, or without :authority"},
	pseudoInTrailers:   {ProtocolError, "RFC 9113 section 8.1", "pseudo-header field in trailers"},
	badScheme:          {ProtocolError, "RFC 9113 section 8.3.1", ":scheme neither http nor https"},
	badPath:            {ProtocolError, "RFC 9113 section 8.3.1", ":path that is empty or does not begin with a slash"},
	hostDiffers:        {ProtocolError, "RFC 9113 section 8.3.1", "Host that differs from :authority"},
	repeatedHost:       {ProtocolError, "RFC 9110 section 7.2", "repeated Host"},
	protocolUnasked:    {ProtocolError, "RFC 8441 section 4", ":protocol without CONNECT, or when it is not enabled"},
	badLength:          {ProtocolError, "RFC 9113 section 8.1.1", "malformed Content-Length"},
	repeatedLength:     {ProtocolError, "RFC 9113 section 8.1.1", "repeated Content-Length"},
	lengthDiffers:      {ProtocolError, "RFC 9113 section 8.1.1", "Content-Length differs from the length of the body"},
	trailersWithoutEnd: {ProtocolError, "RFC 9113 section 8.1", "HEADERS in a body without END_STREAM"},
	forbiddenTrailer:   {ProtocolError, "RFC 9110 section 6.5.1", "field not allowed in trailers"},
	trailersTooLarge:   {EnhanceYourCalm, "RFC 9113 section 10.5.1", "trailers too large"},
}
