// Package typed registers actions that take a struct and return a value. Where each
// field of the struct comes from, which rules it keeps, and what the action may answer
// is said by its types; requests are bound and checked by them, and package openapi
// writes the document from them.
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
// What is registered is an ordinary action of package dunlin: groups, middleware,
// timeouts, limits, hosts and versions apply as always.
//
// # Where fields come from
//
// A field of the action's struct names its source by a tag: path, query, header,
// cookie or form, and the field Body is the body. An exported field without any is
// refused, unless it has the tag dunlin:"-": then requests leave it alone.
// Fields of embedded structs count as the struct's own. Parameters are strings,
// booleans (true, false), numbers, time.Time (RFC 3339), time.Duration (1m30s), types
// with UnmarshalText, and slices of these: a query parameter is repeated, or, with the
// option comma (query:"tags,comma"), a list; a header is always one.
//
// A body is JSON, unless its field is typed.Raw. Config.Transcode has other media types
// made JSON. Fields with the tag form make the body a form; those of type [File] and
// []File are its files.
//
// # Presence
//
// A parameter, and a member of a body, must be there, unless it has a default, is an
// [Optional] or, for parameters, a pointer or a slice, or has the option omitempty or
// omitzero in its json tag. Null is taken by [Nullable], pointers and interfaces only.
//
// # Rules
//
// Tags with the names of JSON Schema: minimum, maximum, exclusiveMinimum,
// exclusiveMaximum, multipleOf, minLength, maxLength (in characters), pattern, format,
// enum, minItems, maxItems, uniqueItems, minProperties, maxProperties and
// dependentRequired. Behind "items.", "additionalProperties." or "propertyNames." they are those of
// elements, values and names. A type may have a method Enum() []T with its values, and
// a method Validate(*typed.Checks) for what needs code. The tags title, description,
// example and deprecated are for readers of the document;
// those of a struct stand in the tag of a blank field, _ struct{}.
//
// The JSON of a type with methods such as MarshalJSON is described with [SchemaAs].
//
// Members that a struct does not have are refused, unless Config.UnknownMembers is Ignore or the struct
// has a blank field with the tag additionalProperties:"true"; then they are read over.
//
// One type may serve both ways. A member with the tag readOnly:"true" is the server's: a
// request that has it is refused, or with Config.IgnoreReadOnly read as if it had not. A member
// with writeOnly:"true" is left out of answers, of streams and events, too. Clients of this
// package leave out what is read-only. The rules end where code writes JSON itself: at MarshalJSON
// methods, at a dunlin.Response that the action returns (see [dunlin.OmitWriteOnly]), and at
// the members of faults.
//
// What does not fit together panics at registration and names the field: a tag that
// is not valid, a rule of another library (validate, binding, min, max) in a struct without
// Validate, a path parameter that the pattern does not have or no field takes.
//
// # Refusals
//
// A request that breaks rules is answered with a problem (RFC 9457) whose member errors
// lists every violation, each with its pointer or parameter and its rule, never the
// value. The status is [Config].InvalidStatus for all of them.
//
// # Files
//
//	op.go        registration               config.go    settings of an app
//	plan.go      In into a plan             param.go     one parameter
//	setter.go    text into fields           bind.go      requests by a plan
//	query.go     reading queries            body.go      bodies
//	form.go      forms and files            multipart.go their bytes
//	optional.go  values that may be absent  checks.go    Validate
//	invalid.go   what is wrong              fault.go     errors that are declared
//	result.go    Out into responses         results.go   its kinds
//	stream.go    sequences, lines, events   answers.go   every status, derived
//	declare.go   what middleware declares   undeclared.go faults that nobody declared
//	security.go  who may call               describe.go  what documents say
//	group.go     defaults of operations     content.go   media types of files
//	encode.go    In into a request          client.go    calling operations
//	test.go      testing them               follow.go    following their streams
//	decode.go    the way to the JSON decoder  direct.go inputs that are a body alone, on the stack
//	util.go      values as text             unsafe.go    every use of unsafe
//	schema.go    what values are, and what is wrong with them
package typed
