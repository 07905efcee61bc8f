package dunlin

import (
	"net/http"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// A HeaderBlock is an immutable set of response headers, rendered once: as bytes of HTTP/1.1 for the loop engine and as
// shared value slices for the map of net/http. To send a block costs one copy. A block is safe for concurrent use. Create
// blocks at start-up and share them:
//
//	var static = dunlin.NewHeaderBlock("Cache-Control", "public,max-age=30", "Vary", "Accept")
type HeaderBlock struct{ block exchange.Block }

// NewHeaderBlock returns a block of alternating names and values. A name that occurs several times is sent several
// times. It panics if a name or a value is invalid in a response.
func NewHeaderBlock(pairs ...string) *HeaderBlock {
	b := new(HeaderBlock)
	b.block.Init()
	if err := b.block.AddPairs(pairs); err != nil {
		panic("dunlin: NewHeaderBlock: " + err.Error())
	}
	return b
}

// defaultHeaders is DefaultHeaders of package ext.
func (r Response) defaultHeaders(block *HeaderBlock) Response {
	if block == nil {
		return r
	}
	return r.defaultFields(&block.block)
}

func (r Response) defaultFields(b *exchange.Block) Response {
	if len(b.Fields) == 0 {
		return r
	}
	if r.a.IsPlain() {
		if both := b.Under(r.a.Base()); both != nil {
			r.a.SetBase(both)
			return r
		}
	}
	if !r.a.Failed() && r.a.LacksAll(b) {
		return r.push(exchange.Field{Block: b})
	}
	for i := range b.Fields {
		f := &b.Fields[i]
		if r.a.Has(f.Name) {
			continue
		}
		for _, v := range f.Values {
			r = r.with(exchange.Field{Name: f.Name, Value: v})
		}
	}
	return r
}

// Get returns the first value of the named header, or "" if the block has none. Names are case-insensitive.
func (b *HeaderBlock) Get(name string) string {
	if b == nil {
		return ""
	}
	if f := b.block.Find(name); f != nil {
		return f.Values[0]
	}
	return ""
}

// SetIn sets the block's headers in a header map of net/http, for standard handlers. The map shares the block's value
// slices, so the caller must not change their elements. To append to a slice is safe, because append copies it.
func (b *HeaderBlock) SetIn(h http.Header) {
	if b != nil {
		b.block.SetIn(h)
	}
}

// String returns the header lines of the block in the format of HTTP/1.1.
func (b *HeaderBlock) String() string {
	if b == nil {
		return ""
	}
	return string(b.block.Wire)
}

// Lacks implements ext.Lacks.
func (*inside) Lacks(resp Response, block *HeaderBlock) bool { return resp.a.LacksAll(&block.block) }

// DefaultHeaders implements ext.DefaultHeaders.
func (*inside) DefaultHeaders(resp Response, block *HeaderBlock) Response {
	return resp.defaultHeaders(block)
}

// inside holds internal methods for the packages ext and middleware and module otel.
type inside struct{}

// Internal returns methods for other packages of this module, such as ext. They are not part of the API: the type of the parameter
// is internal, so that packages of other modules cannot call Internal.
func Internal(exchange.Module) *inside { return nil }

// Glance returns the facts that most middleware needs in one call, see [exchange.Wire]. origin is borrowed.
func (*inside) Glance(r *Request, name string, client bool) (named bool, origin string, ip, now int64) {
	r.alive()
	return r.wire.Glance(name, client)
}

// Among calls Among of the request's wire, see [exchange.Wire].
func (*inside) Among(r *Request, names *exchange.Names) uint64 {
	r.alive()
	return r.wire.Among(names)
}

// Version calls Version of the request's wire. Std also has the version, but a call of Std changes how the body is read.
func (*inside) Version(r *Request) string { return r.wire.Version() }

// Spelling calls Spelling of the request's wire.
func (*inside) Spelling(r *Request) string { return r.wire.Spelling() }

// Credentials adds more to the request's credentials and returns the result of exchange.CredentialsOf.
func (*inside) Credentials(r *Request, more exchange.Credentials, fields bool) exchange.Credentials {
	r.s.Credentials |= more
	return exchange.CredentialsOf(r.wire, &r.s, fields)
}

// Overlaid returns the names of the fields set by WithHeaders.
func (*inside) Overlaid(r *Request) []string { return r.overlaid() }

// Gather makes the answer of a standard handler complete, not streamed, if its announced length is at most limit bytes.
func (*inside) Gather(r *Request, limit int64) { r.s.Gather(limit) }

// SendID sets the header h to the ID of r, adds the other fields of h that resp lacks, and sets those of block unless
// it is nil.
func (*inside) SendID(h *exchange.IDHeader, resp Response, r *Request, block *HeaderBlock) Response {
	if r.s.Numbers {
		var over *exchange.Block
		if block != nil {
			over = &block.block
		}
		id := &r.id
		if r.s.Route.Timeout > 0 { // see setID
			r.shared.Lock()
			known := r.id.Short(&r.s.Strings)
			r.shared.Unlock()
			id = &known
		}
		if a, ok := resp.a.Identify(h.Block, id, &r.s.Strings, over); ok {
			return Response{a}
		}
	}
	if resp.Get(h.Name()) == "" {
		resp = resp.Header(h.Name(), r.identity())
	}
	return resp.defaultFields(h.Others).With(block)
}

// SendIDAgain is SendID for a response with the same headers as an earlier response that SendID has changed. For another
// response it does nothing and reports false.
func (*inside) SendIDAgain(h *exchange.IDHeader, resp Response, r *Request, block *HeaderBlock) (set Response, ok bool) {
	if r.s.Numbers && r.s.Route.Timeout == 0 {
		resp.a, ok = resp.a.IdentifyAgain(h.Block, &r.id, &r.s.Strings, &block.block)
	}
	return resp, ok
}

// NameAnswer sets the ID of an answer's request, unless it has one.
func (*inside) NameAnswer(i *AnswerInfo, id string) {
	i.r.shared.Lock()
	defer i.r.shared.Unlock()
	if i.r.id.IsZero() {
		i.r.id = exchange.Named(id)
	}
}

// TakeID makes Request.ID return the first value of the named request header, if it is visible ASCII of at most limit
// bytes.
func (*inside) TakeID(h *exchange.IDHeader, r *Request, limit int) {
	if id, ok := exchange.NamedVisibly(r.Header(h.Name()), limit); ok {
		r.setID(id)
	}
}
