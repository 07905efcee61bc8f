package exchange

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/dunlinhttp/dunlin/internal/view"
)

// Answer returns an answer with the current headers of x.
func (x *Own) Answer(status int, body string) Answer {
	r := Answer{Body: body, on: &x.anchor, meta: metaOf(status, Complete)}
	r.meta.setVersion(x.version())
	return r
}

// EnsureOwn returns the Own of the answer. If the answer has none, EnsureOwn takes one from the pool.
func (r *Answer) EnsureOwn() *Own {
	if x := r.Own(); x != nil {
		return x
	}
	x := NewOwn(r.Base())
	id := r.identity()
	if x.number = id.number; id.text != "" {
		x.text = id.text
	}
	r.on = &x.anchor
	r.meta.setVersion(x.version())
	return x
}

// Reasons why a field cannot be added to an answer.
var (
	ErrStale      = errors.New("response used again after it was sent: one that owns memory (JSON, Problem, own headers) can be returned only once")
	ErrManyFields = errors.New("response with more than " + strconv.Itoa(maxFields) + " headers of its own")
)

// ClaimSlot makes room for another field of the answer's own, which SetSlot then sets. It returns false if the fields must be
// copied first, because another copy of the answer has appended to them or there is no more room.
func (r *Answer) ClaimSlot() bool {
	x := r.Own()
	if x == nil {
		x = r.EnsureOwn()
		x.state.Store(uint64(r.meta.version()) + 1)
		return true
	}
	now := r.meta.version()
	return now.fields() < len(x.fields) && x.state.CompareAndSwap(uint64(now), uint64(now)+1)
}

// SetSlot fills the claimed slot.
func (r *Answer) SetSlot(name, value string, replace bool) {
	f := &r.on.x.fields[r.meta.fields()]
	f.Name, f.Value, f.Replace, f.names = name, value, replace, maskOf(name)
	r.meta += 1 << versionAt
}

// Push appends f to the answer's own fields, and copies them first if that is necessary (see ClaimSlot). The error is ErrStale or
// ErrManyFields.
func (r Answer) Push(f Field) (Answer, error) {
	if !r.ClaimSlot() {
		if r.meta.fields() == maxFields {
			return r, ErrManyFields
		}
		branch, ok := r.Branch()
		if !ok {
			return r, ErrStale
		}
		r = branch
		r.on.x.state.Store(uint64(r.meta.version()) + 1)
	}
	if f.names = maskOf(f.Name); f.Block != nil {
		f.names = f.Block.names
	}
	r.on.x.fields[r.meta.fields()] = f
	r.meta += 1 << versionAt
	return r, nil
}

// Branch returns the answer with a copy of its Own that has room for another field. The answer must have an Own. Branch returns
// false if the answer was already sent.
func (r Answer) Branch() (Answer, bool) {
	from, n := r.on.x, r.meta.fields()
	if !from.version().sameAs(r.meta.version()) {
		return Answer{}, false
	}
	x := NewOwn(r.Base())
	if n >= len(x.fields) {
		x.fields = make([]Field, min(2*n, maxFields))
	}
	copy(x.fields, from.fields[:n])
	x.Err, x.Make, x.Lasts, x.length, x.number, x.problem = from.Err, from.Make, from.Lasts, from.length, from.number, from.problem
	if from.text != "" {
		x.text = from.text
	}
	if r.OwnsBody() {
		x.Buf = append(x.Buf[:0], r.Body...)
		r.Body = view.String(x.Buf)
	}
	if !from.version().sameAs(r.meta.version()) {
		return Answer{}, false // the answer was sent during the copying
	}
	r.on = &x.anchor
	r.meta.setVersion(x.version() + version(n))
	return r, true
}

// OwnsBody reports whether the body is stored in the buffer of the answer's Own.
func (r *Answer) OwnsBody() bool {
	x := r.Own()
	return x != nil && r.Body != "" && len(x.Buf) >= len(r.Body) && &view.Bytes(r.Body)[0] == &x.Buf[0]
}

// Stale reports whether the answer has an Own and was already sent. The Own may then belong to another answer.
func (r *Answer) Stale() bool {
	x := r.Own()
	return x != nil && !x.version().sameAs(r.meta.version())
}

// Claim gives the answer's Own to the sender, which then must call Release or Lend. The answer must have an Own. Claim returns
// false if the answer was already sent.
func (r *Answer) Claim() bool {
	for {
		now := r.on.x.version()
		if !now.sameAs(r.meta.version()) {
			return false
		}
		if r.on.x.state.CompareAndSwap(uint64(now), uint64(now.next())) {
			return true
		}
	}
}

// Reopen undoes Claim, so that fields can be added to the answer again.
func (r *Answer) Reopen() {
	now := r.on.x.version() + version(r.meta.fields())
	r.on.x.state.Store(uint64(now))
	r.meta.setVersion(now)
}

// Fields returns the answer's own fields, in order.
func (r *Answer) Fields() []Field {
	if x := r.Own(); x != nil {
		return x.fields[:r.meta.fields()]
	}
	return nil
}

// replacing returns the names of the fields after the first `from` fields that have Replace set.
func (r *Answer) replacing(from int) (names nameMask) {
	own := r.Fields()
	for i := from; i < len(own); i++ {
		if own[i].Replace {
			names |= own[i].names
		}
	}
	return names
}

// replaced reports whether a field after the first `from` fields replaces the named header.
func (r *Answer) replaced(name string, from int) bool {
	own, mask := r.Fields(), maskOf(name)
	for i := from; i < len(own); i++ {
		f := &own[i]
		switch {
		case !f.Replace || f.names&mask == 0:
		case f.Block != nil:
			if f.Block.Has(name) {
				return true
			}
		case strings.EqualFold(f.Name, name):
			return true
		}
	}
	return false
}

// Headers calls yield for each header field to be sent, in order, one value at a time. Names are canonical.
func (r *Answer) Headers(yield func(name, value string) bool) {
	if !r.blockHeaders(r.Base(), r.identity(), 0, yield) {
		return
	}
	for i, f := range r.Fields() {
		if f.Block != nil {
			if !r.blockHeaders(f.Block, Identity{number: f.number}, i+1, yield) {
				return
			}
		} else if !r.replaced(f.Name, i+1) && !yield(f.Name, f.Value) {
			return
		}
	}
}

// blockHeaders yields the fields of a block with an identifier, except those replaced by the fields from `from` on.
func (r *Answer) blockHeaders(b *Block, id Identity, from int, yield func(name, value string) bool) bool {
	if b == nil {
		return true
	}
	for i := range b.Fields {
		f := &b.Fields[i]
		if r.replaced(f.Name, from) {
			continue
		}
		if f.isID && !yield(f.Name, id.String()) {
			return false
		}
		for _, v := range f.Values {
			if !yield(f.Name, v) {
				return false
			}
		}
	}
	return true
}

// AppendHeaders appends the lines of the fields that Headers yields. A block without replaced names is appended as rendered.
func (r *Answer) AppendHeaders(out []byte) []byte {
	own := r.Fields()
	out = r.appendBlock(out, r.Base(), r.identity(), 0)
	for i := range own {
		f := &own[i]
		switch {
		case f.Block != nil:
			out = r.appendBlock(out, f.Block, Identity{number: f.number}, i+1)
		case r.replacing(i+1)&f.names == 0 || !r.replaced(f.Name, i+1):
			out = appendLine(out, f.Name, f.Value)
		}
	}
	return out
}

// appendBlock appends the lines of a block with an identifier, except those replaced by the fields from `from` on.
func (r *Answer) appendBlock(out []byte, b *Block, id Identity, from int) []byte {
	if b == nil {
		return out
	}
	names := r.replacing(from)
	if names&b.names == 0 {
		return b.append(out, id)
	}
	for i := range b.Fields {
		if f := &b.Fields[i]; names&maskOf(f.Name) == 0 || !r.replaced(f.Name, from) {
			if f.isID {
				out = appendLine(out, f.Name, id.String())
			}
			for _, v := range f.Values {
				out = appendLine(out, f.Name, v)
			}
		}
	}
	return out
}

func appendLine(out []byte, name, value string) []byte {
	out = append(append(out, name...), ": "...)
	return append(append(out, value...), "\r\n"...)
}

// SetIn sets the headers in a header map of net/http and shares the value slices of blocks.
func (r *Answer) SetIn(h http.Header, s *Strings) {
	r.Base().setIn(h, r.identity())
	own := r.Fields()
	for i := range own {
		f := &own[i]
		switch {
		case f.Block != nil:
			f.Block.setIn(h, Identity{number: f.number})
		case f.Replace:
			h[f.Name] = s.Values(f.Value)
		default:
			// The slice of a block has no spare capacity, so append copies it.
			h[f.Name] = append(h[f.Name], f.Value)
		}
	}
}

// identity returns the identity to write into the place for it in the base, if the base has such a place.
func (r *Answer) identity() Identity {
	switch {
	case r.on == nil:
		return Identity{}
	case r.on.x != nil:
		return Identity{text: r.on.text, number: r.on.x.number}
	}
	return Identity{text: r.on.text, number: Number(r.meta.version())}
}

// AppendBase appends the lines of the base, which must not be nil. It is for an answer without fields of its own.
func (r *Answer) AppendBase(out []byte) []byte {
	b := r.Base()
	if r.on.x == nil && r.on.text == "" && b.HasNumber() { // the common case
		out = append(out, b.Wire...)
		Number(r.meta.version()).put(out[len(out)-len(b.Wire)+b.hole:])
		return append(out, b.tail...)
	}
	return b.append(out, r.identity())
}

// Identify adds the fields of b, the block of an IDHeader, with the identifier id, and then the fields of over, unless over is
// nil. ok is false if this fast path does not apply, because the answer has some of b's fields or reports a failure, or because
// the identifier must be checked. The caller then adds the identifier like any other field.
func (r Answer) Identify(b *Block, id *Identity, s *Strings, over *Block) (identified Answer, ok bool) {
	if again, ok := r.IdentifyAgain(b, id, s, over); ok {
		return again, true
	}
	return r.identify(b, id.Short(s), s, over)
}

// IdentifyAgain is Identify with a cached result for the base of the answer. If there is no such result, ok is false.
func (r Answer) IdentifyAgain(b *Block, id *Identity, s *Strings, over *Block) (identified Answer, ok bool) {
	last := over
	if last == nil {
		last = b
	}
	if r.on == nil || !r.IsPlain() || r.Failed() {
		return r, false
	}
	all := last.meet(r.on.block.Load(), b)
	if all == nil {
		return r, false
	}
	n := id.Number(s)
	switch {
	case n != 0:
		r.SetBase(all)
	case id.visible():
		r.on = s.anchor(all, id.text)
	default:
		return r, false
	}
	r.meta.setVersion(version(n))
	return r, true
}

func (r Answer) identify(b *Block, id Identity, s *Strings, over *Block) (identified Answer, ok bool) {
	if id.text != "" && !id.visible() || r.Failed() || !r.LacksAll(b) {
		return r, false
	}
	if r.IsPlain() {
		base := r.Base()
		if all := b.Under(base); all != nil {
			last := b
			if over != nil {
				last, all = over, over.Over(all)
			}
			if base != nil {
				last.keepMet(base, b, all)
			}
			if id.text != "" {
				r.on = s.anchor(all, id.text)
			} else {
				r.SetBase(all)
			}
			r.meta.setVersion(version(id.number &^ isVisible))
			return r, true
		}
	}
	if id.text != "" {
		return r, false
	}
	r, err := r.Push(Field{Block: b, number: id.number})
	if err == nil && over != nil {
		r, err = r.Push(Field{Block: over, Replace: true})
	}
	return r, err == nil
}

// Lacks reports whether no part of the answer has a field of that name. If it returns false, the field may still not be sent,
// because another field replaces it.
func (r *Answer) Lacks(name string) bool {
	mask, own := maskOf(name), r.Fields()
	if b := r.Base(); b != nil && b.names&mask != 0 && b.Has(name) {
		return false
	}
	for i := range own {
		f := &own[i]
		if f.names&mask != 0 && (f.Block != nil && f.Block.Has(name) || f.Block == nil && strings.EqualFold(f.Name, name)) {
			return false
		}
	}
	return true
}

// LacksAll is Lacks for all names of a block.
func (r *Answer) LacksAll(b *Block) bool {
	names := r.mask()
	if names&b.names == 0 {
		return true
	}
	for i := range b.Fields {
		if name := b.Fields[i].Name; names&maskOf(name) != 0 && !r.Lacks(name) {
			return false
		}
	}
	return true
}

// mask returns the mask of all names in the answer.
func (r *Answer) mask() nameMask {
	var names nameMask
	if base := r.Base(); base != nil {
		names = base.names
	}
	own := r.Fields()
	for i := range own {
		names |= own[i].names
	}
	return names
}

var dateMask = maskOf("Date")

// Dated reports whether the answer has a Date, so that the adapter must not add one.
func (r *Answer) Dated() bool { return r.mask()&dateMask != 0 && !r.Lacks("Date") }

// Rendered returns the base, which may be nil. If all is true, the base contains the lines of all header fields, without Date, so
// that AppendBase is sufficient. all may be false although that is the case.
func (r *Answer) Rendered() (base *Block, all bool) {
	if r.on == nil {
		return nil, true
	}
	if r.on.x != nil && r.meta.fields() > 0 {
		return nil, false
	}
	base = r.on.block.Load()
	return base, base == nil || !base.dated
}

// Has reports whether the named field will be sent.
func (r *Answer) Has(name string) bool {
	for n := range r.Headers {
		if strings.EqualFold(n, name) {
			return true
		}
	}
	return false
}
