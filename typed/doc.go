// Package typed registers actions that take a struct and return a value. The types declare the source of each field, its
// rules, and the possible answers of the action. Requests are bound and checked accordingly, and package openapi writes the
// document from the types.
//
//	type CreateUser struct {
//		Org  string                 `path:"org"`
//		Dry  bool                   `query:"dry" default:"false"`
//		Key  typed.Optional[string] `header:"Idempotency-Key" maxLength:"64"`
//		Body struct {
//			Name string                 `json:"name" minLength:"1" maxLength:"80"`
//			Mail typed.Nullable[string] `json:"mail,omitzero" format:"email"`
//		}
//	}
//
//	var EmailTaken = typed.NewFault(409, "email-taken", "The address is taken")
//
//	func createUser(r *dunlin.Request, in CreateUser) (typed.Created[User], error)
//
//	typed.Post(app, "/orgs/{org}/users", createUser).Name("createUser").Faults(EmailTaken)
//
// A typed action is registered as an ordinary action of package dunlin: groups, middleware,
// timeouts, limits, hosts and versions apply as usual.
//
// # Sources of fields
//
// A field of the action's struct names its source by a tag: path, query, header, cookie or form.
// The field Body is the request body. Registration refuses an exported field without a source,
// unless it has the tag dunlin:"-"; requests do not set such a field. Fields of embedded structs
// count as fields of the struct itself. Parameters are strings, booleans (true, false), numbers,
// time.Time (RFC 3339), time.Duration (1m30s), types with UnmarshalText, and slices of these. A
// query parameter of a slice type is repeated, or is a comma-separated list with the option comma
// (query:"tags,comma"). A header of a slice type is always a comma-separated list.
//
// A body is JSON, unless its field is of type [Raw] or [Parts]. Config.Transcode converts other
// media types to JSON. Fields with the tag form make the body a form; fields of type [File] and
// []File are its files.
//
// # Presence
//
// A parameter, or a member of a body, is required, unless it has a default, is an [Optional], or
// has the option omitempty or omitzero in its json tag. Parameters of pointer and slice types are
// not required either. Only [Nullable], pointers and interfaces accept null.
//
// # Rules
//
// Rules are tags with the names of JSON Schema: minimum, maximum, exclusiveMinimum,
// exclusiveMaximum, multipleOf, minLength, maxLength (in characters), pattern, format, enum,
// minItems, maxItems, uniqueItems, minProperties, maxProperties and dependentRequired. With the
// prefix "items.", "additionalProperties." or "propertyNames." they apply to elements, values and
// names. A type may have a method Enum() []T that returns its values, and a method
// Validate(*typed.Checks) for rules that need code. The tags title, description, example and
// deprecated are for readers of the document. For a whole struct these tags stand on a blank field,
// _ struct{}.
//
// [SchemaAs] describes the JSON of a type with methods such as MarshalJSON.
//
// Members that a struct does not have are refused, unless Config.UnknownMembers is Ignore or the
// struct has a blank field with the tag additionalProperties:"true"; then they are ignored.
//
// One type may serve both requests and answers. A member with the tag readOnly:"true" is set by the
// server only: a request that has it is refused, or with Config.IgnoreReadOnly the member is
// ignored. A member with writeOnly:"true" is left out of answers, including streams and events.
// Clients of this package leave out read-only members. These rules do not apply where code writes
// JSON itself: in MarshalJSON methods, in a dunlin.Response that the action returns (see
// [dunlin.JSONOmitWriteOnly]), and in the members of faults.
//
// Registration panics on an inconsistency and names the field: a tag that is not valid, a rule of
// another library (validate, binding, min, max) in a struct without Validate, a path parameter that
// the pattern does not have or that no field takes.
//
// # Refusals
//
// A request that breaks rules is answered with a problem (RFC 9457). Its member errors lists every
// violation with its pointer or parameter and its rule, never the value. All of them have the
// status [Config].InvalidStatus.
//
// # Files
//
//	op.go        registration               config.go    settings of an app
//	plan.go      In into a plan             param.go     one parameter
//	setter.go    text into fields           bind.go      requests by a plan
//	query.go     reading queries            body.go      bodies
//	form.go      forms and files            multipart.go their bytes
//	optional.go  values that may be absent  checks.go    Validate
//	invalid.go   violations of a request    fault.go     errors that are declared
//	result.go    Out into responses         results.go   its kinds
//	location.go  encoding of Location
//	stream.go    sequences, lines, events   answers.go   every status, derived
//	declare.go   declarations by middleware undeclared.go faults without a declaration
//	security.go  requirements of callers    describe.go  contents of documents
//	group.go     defaults of operations     content.go   media types of files
//	encode.go    In into a request          client.go    calling operations
//	test.go      testing them               follow.go    following their streams
//	decode.go    the way to the JSON decoder  direct.go inputs that are a body alone, on the stack
//	util.go      values as text             unsafe.go    every use of unsafe
//	schema.go    schemas and violations  formats.go  answers in other formats than JSON
//	page.go      lists in pages, and their cursors
package typed
