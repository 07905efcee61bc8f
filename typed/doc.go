// Package typed registers actions that take a struct and return a value. The types declare the source of each field, the
// rules for its value, and the possible answers of the action. This package fills the struct from a request and checks the
// rules, and package openapi writes the document from the types.
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
// A typed action is registered as an ordinary action of package dunlin: groups, middleware, timeouts, limits, hosts and
// versions apply to it as usual.
//
// # Sources of fields
//
// A field of the action's struct names its source with a tag: path, query, header, cookie or form. The field Body is the
// request body. Registration refuses an exported field without a source, except a field with the tag dunlin:"-", which
// requests do not set. Fields of embedded structs count as fields of the struct.
//
// Parameters are strings, booleans (true, false), numbers, time.Time (RFC 3339), time.Duration (1m30s), types with
// UnmarshalText, and slices of these. The values of a query parameter of a slice type are repeated pairs, or, with the
// option comma (query:"tags,comma"), one comma-separated list. A header of a slice type is always a comma-separated list.
//
// A body is JSON, unless the field Body has the type [Raw] or [Parts]. Config.Transcode converts other media types to JSON.
// If the struct has fields with the tag form, the body is a form; fields of type [File] and []File are its files.
//
// # Presence
//
// A parameter, or a member of a body, is required, unless it has a default, is an [Optional], or has the option omitempty
// or omitzero in its json tag. Parameters of pointer and slice types are not required either. Null is accepted only by
// [Nullable], pointers and interfaces.
//
// # Rules
//
// Rules are tags with the names of JSON Schema: minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf,
// minLength, maxLength (in characters), pattern, format, enum, minItems, maxItems, uniqueItems, minProperties,
// maxProperties and dependentRequired. Rules with the prefix "items." apply to elements, rules with "additionalProperties."
// to the values of a map, and rules with "propertyNames." to its names. A type may have a method Enum() []T that returns
// its permitted values, and a method Validate(*typed.Checks) for rules that need code. The tags title, description, example
// and deprecated are for readers of the document. For a whole struct, write these tags on a blank field, _ struct{}.
//
// [SchemaAs] describes the JSON of a type with methods such as MarshalJSON.
//
// A request that has a member for which the struct has no field is refused. If Config.UnknownMembers is
// UnknownMembersIgnore, or if the struct has a blank field with the tag additionalProperties:"true", such members are
// ignored.
//
// One type can be used for both requests and answers. A member with the tag readOnly:"true" is set only by the server: a
// request that has the member is refused, or, with Config.IgnoreReadOnly, the member is ignored. A member with
// writeOnly:"true" is omitted from answers, including streams and events. Clients of this package omit read-only members.
// These rules do not apply where code writes JSON itself: in MarshalJSON methods, in a dunlin.Response that the action
// returns (see [dunlin.JSONOmitWriteOnly]), and in the members of faults.
//
// Registration panics on an inconsistency and names the field. Examples are a tag that is not valid, a rule of another
// library (validate, binding, min, max) in a struct without Validate, a path parameter that is not in the pattern, and a
// parameter of the pattern without a field.
//
// # Refusals
//
// A request that violates rules is answered with a problem (RFC 9457). The member errors of the problem lists every
// violation with the pointer or the parameter and the rule, but without the value. The status is [Config].InvalidStatus.
//
// # Files
//
//	op.go        registration                 config.go      settings of an app
//	plan.go      compiling In into a plan     param.go       one parameter
//	setter.go    storing text in fields       bind.go        reading a request by a plan
//	query.go     reading queries              body.go        reading bodies
//	form.go      forms and files              multipart.go   parts of multipart bodies
//	optional.go  values that may be absent    checks.go      calling Validate
//	invalid.go   violations of a request      fault.go       declared errors
//	result.go    converting Out to responses  results.go     None, Created, Accepted, Either
//	page.go      lists in pages, and their cursors
//	stream.go    sequences, lines, events     answers.go     all answers of an operation
//	declare.go   declarations by middleware   undeclared.go  faults without a declaration
//	security.go  requirements of callers      describe.go    contents of documents
//	group.go     defaults of operations       content.go     media types of files
//	encode.go    converting In to a request   client.go      calling operations
//	test.go      testing operations           follow.go      reading streams of operations
//	decode.go    decoding JSON bodies         direct.go      decoding bodies on the stack
//	util.go      values as text               unsafe.go      every use of unsafe
//	schema.go    schemas and violations       formats.go     answers in other formats than JSON
package typed
