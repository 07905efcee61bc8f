package middleware

import (
	"cmp"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/ext"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/gcra"
	"github.com/dunlinhttp/dunlin/internal/view"
)

// inside gives this package the internal methods of package dunlin.
var inside = dunlin.Internal(exchange.Module{})

// Most services install RequestID, CORS, SecureHeaders and RateLimit by address, usually in a row. Adjacent features of
// these four are fused into one feature, whose action is an edge. The parts of an edge process the request in the order of
// the features. If the response has none of their headers, all headers are added in one step. The result is the same as
// with separate features, but faster: constant headers are rendered together, once, and added after one lookup.

// An edgeFeature is one of the four features, or several of them that have been fused.
type edgeFeature struct {
	dunlin.Hooks
	edgeParts
	n     uint8
	order [4]edgePart // the outermost first
}

// feature returns the feature of a single part.
func (p edgeParts) feature(headers func(*dunlin.AnswerInfo, dunlin.Response) dunlin.Response) dunlin.Feature {
	f := &edgeFeature{edgeParts: p, n: 1, order: [4]edgePart{p.only()}}
	f.Wrap, f.Headers = f.around, headers
	return f
}

// Fuse returns one feature in place of f and inner, the next feature inside of f, or nil if both have the same part.
// Package dunlin calls it for adjacent features.
func (f *edgeFeature) Fuse(inner dunlin.Feature) dunlin.Feature {
	both := *f
	if more, ok := inner.(*edgeFeature); !ok || !both.merge(&more.edgeParts) {
		return nil
	} else {
		both.n += uint8(copy(both.order[f.n:], more.order[:more.n]))
	}
	both.Wrap = both.around
	return &both
}

// edgeParts are the parts of an edge. Absent parts are nil.
type edgeParts struct {
	id     *requestID
	cors   *corsRules
	secure *secureHeaders
	rate   *rateLimiter
}

// An edge is an action wrapped by an edgeFeature.
type edge struct {
	// The following fields are copies of fields of the parts. Most requests need them, so they are adjacent.
	next   dunlin.Action
	joined atomic.Pointer[edgeHeaders] // set by the first request
	name   string                      // of the header of RequestID
	first  string                      // first origin of CORS
	usual  bool                        // the order is RequestID, CORS, RateLimit, and Glance can read the header of RequestID
	byTLS  bool                        // SecureHeaders differs with TLS
	shares bool                        // has CORS
	limits bool                        // has RateLimit
	n      uint8
	order  [4]edgePart // the outermost first
	quick  quickLimit

	edgeParts
}

// An edgePart identifies a part.
type edgePart uint8

const (
	partID edgePart = iota
	partCORS
	partSecure
	partRate
)

// around returns the action of the edge around an action.
func (f *edgeFeature) around(next dunlin.Action) dunlin.Action {
	e := &edge{edgeParts: f.edgeParts, next: next, order: f.order, n: f.n}
	if e.n == 1 {
		return [...]dunlin.Action{partID: e.identify, partCORS: e.share, partSecure: e.secured, partRate: e.limit}[e.order[0]]
	}
	e.usual = slices.IsSorted(slices.DeleteFunc(slices.Clone(e.order[:e.n]), func(part edgePart) bool { return part == partSecure }))
	e.byTLS = e.secure != nil && e.secure.secure != e.secure.clear
	e.shares, e.limits = e.cors != nil, e.rate != nil
	if e.id != nil {
		e.name = e.id.header
		e.usual = e.usual && !exchange.AboutCoding(e.name) // Request.Header hides such a header after DecodeBody
	}
	if e.shares && len(e.cors.first) > 0 {
		e.first = e.cors.first[0].origin
	}
	if e.limits {
		e.quick = e.rate.quick()
	}
	return e.several()
}

// at returns the number of parts that are outside of the given part.
func (e *edge) at(part edgePart) int { return slices.Index(e.order[:e.n], part) }

// only returns the single part.
func (p *edgeParts) only() edgePart {
	switch {
	case p.id != nil:
		return partID
	case p.cors != nil:
		return partCORS
	case p.secure != nil:
		return partSecure
	}
	return partRate
}

// merge adds the parts of others. It returns false if p already has one of them.
func (p *edgeParts) merge(others *edgeParts) bool {
	both := edgeParts{cmp.Or(p.id, others.id), cmp.Or(p.cors, others.cors), cmp.Or(p.secure, others.secure), cmp.Or(p.rate, others.rate)}
	if both.count() < p.count()+others.count() {
		return false
	}
	*p = both
	return true
}

func (p *edgeParts) count() (n int) {
	for _, there := range []bool{p.id != nil, p.cors != nil, p.secure != nil, p.rate != nil} {
		if there {
			n++
		}
	}
	return n
}

// edgeSeen has the results of the parts of an edge for a request.
type edgeSeen struct {
	variant int  // index of the origin's headers, see corsRules.find
	named   bool // the origin must be added to the response
	secure  bool // use the headers of SecureHeaders for TLS
	limited bool
	rate    gcra.Verdict
}

// identify is the action of an edge with RequestID alone.
func (e *edge) identify(r *dunlin.Request) dunlin.Response {
	e.id.adopt(r)
	return inside.SendID(e.id.answer, e.next(r), r, nil)
}

// share is the action of an edge with CORS alone.
func (e *edge) share(r *dunlin.Request) dunlin.Response {
	origin := view.String(ext.HeaderBytes(r, "Origin")) // borrowed
	if origin != "" && isPreflight(r) {
		return e.cors.preflight(dunlin.NoContent(), r.HeaderList("Origin"))
	}
	if e.cors.any != nil {
		return ext.DefaultHeaders(e.next(r), e.cors.any.plain)
	}
	which, name := e.cors.find(origin)
	if resp := e.next(r); name {
		return e.cors.say(resp, which, name, r.HeaderList("Origin"))
	} else {
		return e.cors.say(resp, which, name, "")
	}
}

// isPreflight reports whether a request with an Origin is a CORS preflight.
func isPreflight(r *dunlin.Request) bool {
	return r.Method() == http.MethodOptions && r.Header("Access-Control-Request-Method") != ""
}

// secured is the action of an edge with SecureHeaders alone.
func (e *edge) secured(r *dunlin.Request) dunlin.Response {
	block := e.secure.block(r)
	return ext.DefaultHeaders(e.next(r), block)
}

// limit is the action of an edge with RateLimit alone.
func (e *edge) limit(r *dunlin.Request) dunlin.Response {
	v, limited := e.rate.decide(r)
	switch {
	case !limited:
		return e.next(r)
	case !v.Admitted:
		return e.rate.fields.refusal(r, v)
	}
	return e.rate.fields.add(e.next(r), v)
}

// several returns the action of several parts. Between two requests the kernel runs and displaces code from
// the processor's nearest caches. Therefore the code that most requests need is in a few adjacent functions,
// and rare code is in other functions.
func (e *edge) several() dunlin.Action {
	return func(r *dunlin.Request) dunlin.Response {
		seen := edgeSeen{secure: e.byTLS && r.Secure()} // before the action, which may change the request
		if !e.usual {
			return e.serveInOrder(r, &seen)
		}
		// The following lines are lookInOrder, inlined for the usual order.
		named, origin, ip, now := inside.Glance(r, e.name, e.limits) // origin is borrowed
		if named {
			e.id.adopt(r)
		}
		if e.shares && origin != "" {
			if isPreflight(r) {
				return e.add(e.cors.preflight(dunlin.NoContent(), r.HeaderList("Origin")), r, &seen, e.at(partCORS))
			}
			if seen.variant = 1; origin != e.first {
				seen.variant, seen.named = e.cors.find(origin)
			}
		}
		if e.limits {
			if ip >= 0 {
				seen.rate, seen.limited = e.quick.decide(uint32(ip), now), true
			} else {
				seen.rate, seen.limited = e.rate.decide(r)
			}
			if seen.limited && !seen.rate.Admitted {
				return e.add(e.rate.fields.refusal(r, seen.rate), r, &seen, e.at(partRate))
			}
		}
		resp := e.next(r)
		if all := e.joined.Load(); all != nil && seen.limited && !seen.named && !seen.secure {
			h := &all[seen.variant][0]
			if again, ok := inside.SendIDAgain(&h.id, resp, r, e.quick.limit(seen.rate)); ok {
				return again
			}
		}
		return e.finish(resp, r, &seen)
	}
}

// serveInOrder is the action of several parts in an unusual order.
func (e *edge) serveInOrder(r *dunlin.Request, seen *edgeSeen) dunlin.Response {
	if resp, answered := e.lookInOrder(r, seen); answered {
		return resp
	}
	return e.finish(e.next(r), r, seen)
}

// finish adds the headers of all parts. It adds them in one step if they are rendered together and the response has none of them.
func (e *edge) finish(resp dunlin.Response, r *dunlin.Request, seen *edgeSeen) dunlin.Response {
	if !seen.named && seen.limited == e.limits {
		tls := 0
		if seen.secure {
			tls = 1
		}
		all := e.joined.Load()
		if all == nil {
			all = e.headers()
		}
		if h := &all[seen.variant][tls]; h.names != nil && ext.Lacks(resp, h.names) {
			var limit *dunlin.HeaderBlock
			if seen.limited {
				limit = e.quick.limit(seen.rate)
			}
			if h.block == nil {
				return inside.SendID(&h.id, resp, r, limit)
			}
			return ext.DefaultHeaders(resp, h.block).With(limit)
		}
	}
	return e.add(resp, r, seen, int(e.n))
}

// lookInOrder calls the parts in their order with the request. A part may answer the request.
func (e *edge) lookInOrder(r *dunlin.Request, seen *edgeSeen) (resp dunlin.Response, answered bool) {
	for i, part := range e.order[:e.n] {
		switch part {
		case partID:
			e.id.adopt(r)
		case partCORS:
			origin := view.String(ext.HeaderBytes(r, "Origin")) // borrowed
			if origin == "" {
				break
			}
			if isPreflight(r) {
				return e.add(e.cors.preflight(dunlin.NoContent(), r.HeaderList("Origin")), r, seen, i), true
			}
			seen.variant, seen.named = e.cors.find(origin)
		case partRate:
			if seen.rate, seen.limited = e.rate.decide(r); seen.limited && !seen.rate.Admitted {
				return e.add(e.rate.fields.refusal(r, seen.rate), r, seen, i), true
			}
		}
	}
	return resp, false
}

// add adds the headers of the n outermost parts to a response, part by part.
func (e *edge) add(resp dunlin.Response, r *dunlin.Request, seen *edgeSeen, n int) dunlin.Response {
	for n > 0 {
		n--
		switch e.order[n] {
		case partID:
			resp = inside.SendID(e.id.answer, resp, r, nil)
		case partCORS:
			switch {
			case e.cors.any != nil:
				resp = ext.DefaultHeaders(resp, e.cors.any.plain)
			case seen.named:
				resp = e.cors.say(resp, seen.variant, true, r.HeaderList("Origin"))
			default:
				resp = e.cors.say(resp, seen.variant, false, "")
			}
		case partSecure:
			block := e.secure.clear
			if seen.secure {
				block = e.secure.secure
			}
			resp = ext.DefaultHeaders(resp, block)
		case partRate:
			if seen.limited {
				resp = e.rate.fields.add(resp, seen.rate)
			}
		}
	}
	return resp
}

// edgeHeaders are the headers of all parts of an edge, rendered together. The first index is that of
// the CORS headers, see corsRules.find. The second is 0 for clear text and 1 for TLS.
type edgeHeaders [1 + maxBlocks][2]joinedHeaders

// joinedHeaders are the headers of all parts, without the remaining quota of a rate limit.
type joinedHeaders struct {
	names *dunlin.HeaderBlock // the response must have none of these names; nil if the headers are not joined
	block *dunlin.HeaderBlock // the headers, without RequestID; else nil
	id    exchange.IDHeader   // the headers, with RequestID
}

// headers returns the joined headers.
func (e *edge) headers() *edgeHeaders {
	all := e.edgeParts.headers()
	e.joined.Store(all)
	return all
}

// joints caches joined headers by parts, so that routes with the same features share them. One of the
// parts holds the cache.
type joints struct {
	mu    sync.Mutex
	known map[edgeParts]*edgeHeaders
}

// headers returns the joined headers of all parts.
func (p edgeParts) headers() *edgeHeaders {
	var keeper *joints
	switch {
	case p.id != nil:
		keeper = &p.id.joints
	case p.cors != nil:
		keeper = &p.cors.joints
	default:
		keeper = &p.secure.joints
	}
	keeper.mu.Lock()
	defer keeper.mu.Unlock()
	if h := keeper.known[p]; h != nil {
		return h
	}
	h := new(edgeHeaders)
	for variant := range h {
		for tls := range h[variant] {
			h[variant][tls] = p.join(variant, tls)
		}
	}
	if keeper.known == nil {
		keeper.known = make(map[edgeParts]*edgeHeaders)
	}
	keeper.known[p] = h
	return h
}

// join renders the headers for an index of CORS headers. The result is empty if there is no such index,
// or if a name occurs twice.
func (p *edgeParts) join(variant, tls int) (h joinedHeaders) {
	var pairs []string
	if p.cors == nil && variant > 0 || tls > 0 && (p.secure == nil || p.secure.secure == p.secure.clear) {
		return h
	}
	if p.cors != nil {
		block := blockVaryOrigin
		switch {
		case variant > len(p.cors.first):
			return h
		case p.cors.any != nil:
			block = p.cors.any.plain
		case variant > 0:
			block = p.cors.first[variant-1].answer.varying
		}
		pairs = append(pairs, pairsOf(block)...)
	}
	if p.secure != nil {
		block := p.secure.clear
		if tls > 0 {
			block = p.secure.secure
		}
		pairs = append(pairs, pairsOf(block)...)
	}
	names := pairs[:len(pairs):len(pairs)]
	if p.rate != nil {
		pairs = append(pairs, "RateLimit-Policy", p.rate.fields.policy)
		names = append(names, "RateLimit-Policy", "", "RateLimit", "")
	}
	if p.id != nil {
		names = append(names, p.id.header, "")
	}
	once := map[string]bool{}
	for i := 0; i < len(names); i += 2 {
		name := http.CanonicalHeaderKey(names[i])
		if once[name] {
			return h
		}
		once[name] = true
	}
	h.names = dunlin.NewHeaderBlock(names...)
	if p.id != nil {
		id, err := exchange.NewIDHeader(p.id.header, pairs...)
		if err != nil {
			panic("middleware: " + err.Error()) // RequestID and names have been checked
		}
		h.id = *id
	} else {
		h.block = dunlin.NewHeaderBlock(pairs...)
	}
	return h
}

// pairsOf returns the names and values of a block.
func pairsOf(block *dunlin.HeaderBlock) []string {
	var pairs []string
	for name, value := range dunlin.Empty().With(block).Headers() {
		pairs = append(pairs, name, value)
	}
	return pairs
}
