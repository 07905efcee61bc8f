package router

import "strings"

// The tree. Patterns that begin alike share nodes. An edge into a node is either a run of static text,
// cut wherever two patterns part, or one dynamic segment:
//
//	/users, /users/{id:int}, /users/{name}/posts, /uploads/{path...}
//
//	"/u" ── "sers" (end) ── "/" ┬ {id:int} (end)
//	     │                      └ {name} ── "/posts" (end)
//	     └─ "ploads/" ── catch-all
//
// Dynamic edges leave only nodes at which a segment begins. A lookup tries the edges of such a node in
// the order of precedence and comes back to try the next when the rest of the path does not match.
//
// The surprising part is that this cannot explode. A node is reached by one sequence of edges only, each of which takes a
// fixed piece of the path (a text; or the segment, which is read in one way), so a lookup enters every
// node at most once, however it comes back. It does so having looked at most once at the rest of
// the path. Its time is thus at most the path's length times the number of nodes whose edges
// compete, and the depth of the recursion at most that of the longest pattern; neither depends on what a path contains.
//
// Nodes are immutable: adding a route copies the nodes from the root to the new leaf and shares all others.
type node struct {
	text     string // the static text of the edge into this node
	first    string // the first bytes of the children's texts, ascending
	children []*node
	dynamic  *dynamic // when a segment begins here and there is more than static text
	end      *leaf    // of the patterns that end here, and the prefix routes for this path
	site     *node    // in the tree of exact hosts: the paths of the host that ends here
}

// dynamic holds the dynamic edges of a node.
type dynamic struct {
	constrained []edge // ordered by shape
	named       *node
	rest        *leaf // catch-alls and prefix routes: whatever follows
}

// edge is a constrained segment and what follows it.
type edge struct {
	segment *segment
	params  int
	next    *node
}

// child returns the static child whose text begins with c, or nil.
func (n *node) child(c byte) *node {
	for i := 0; i < len(n.first); i++ {
		if n.first[i] == c {
			return n.children[i]
		}
	}
	return nil
}

// exact follows static text from n to the node it ends at, or nil.
func (n *node) exact(text string) *node {
	for n != nil && text != "" {
		n = n.child(text[0])
		if n == nil || !strings.HasPrefix(text, n.text) {
			return nil
		}
		text = text[len(n.text):]
	}
	return n
}

// walkLeaves visits the leaves below n, until visit returns false.
func (n *node) walkLeaves(visit func(*leaf) bool) bool {
	if n == nil {
		return true
	}
	if n.end != nil && !visit(n.end) {
		return false
	}
	for _, child := range n.children {
		if !child.walkLeaves(visit) {
			return false
		}
	}
	if n.dynamic == nil {
		return true
	}
	for _, e := range n.dynamic.constrained {
		if !e.next.walkLeaves(visit) {
			return false
		}
	}
	return n.dynamic.named.walkLeaves(visit) && (n.dynamic.rest == nil || visit(n.dynamic.rest))
}
