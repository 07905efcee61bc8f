package semantics

// Method is a common request method as a number, for fast comparison.
type Method uint8

// MethodOther is the Method of every method that has no constant here.
const (
	MethodOther Method = iota
	MethodGet
	MethodHead
	MethodPost
	MethodPut
	MethodPatch
	MethodDelete
	MethodOptions
	MethodConnect
	MethodTrace
	MethodQuery

	Methods // number of constants
)

var methodNames = [...]string{
	MethodOther: "", MethodGet: "GET", MethodHead: "HEAD", MethodPost: "POST",
	MethodPut: "PUT", MethodPatch: "PATCH", MethodDelete: "DELETE",
	MethodOptions: "OPTIONS", MethodConnect: "CONNECT", MethodTrace: "TRACE",
	MethodQuery: "QUERY",
}

// String returns the method's token, and "" for MethodOther.
func (m Method) String() string { return methodNames[m] }

// MethodOf returns the Method of a method's name. Methods are case-sensitive (RFC 9110 §9.1), so
// "get" is MethodOther.
func MethodOf[T ~string | ~[]byte](token T) Method {
	switch string(token) {
	case "GET":
		return MethodGet
	case "HEAD":
		return MethodHead
	case "POST":
		return MethodPost
	case "PUT":
		return MethodPut
	case "PATCH":
		return MethodPatch
	case "DELETE":
		return MethodDelete
	case "OPTIONS":
		return MethodOptions
	case "CONNECT":
		return MethodConnect
	case "TRACE":
		return MethodTrace
	case "QUERY":
		return MethodQuery
	}
	return MethodOther
}
