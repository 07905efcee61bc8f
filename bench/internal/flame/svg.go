package flame

import (
	"bytes"
	_ "embed"
	"fmt"
	"html"
	"strings"
)

// A Graph describes how to draw a tree.
type Graph struct {
	Title  string
	Format func(value int64) string // formats a value with its unit
}

const (
	width       = 1000
	rowHeight   = 17
	margin      = 6
	heading     = 24
	letterWidth = 6.1 // width of a letter in pixels, in a monospace font of 10 px
	// minShare is the minimum share of the total for which a frame is drawn. A share of 0.25 % is two and a half pixels
	// wide, and less than one sample of a profile with a few hundred samples.
	minShare = 0.0025
)

//go:embed zoom.js
var zoom string

// SVG draws the tree with its root at the bottom. The result is a complete SVG file.
func (g Graph) SVG(root *Frame) []byte {
	rows := depth(root, max(1, int64(minShare*float64(root.Total))))
	d := drawing{Graph: g, root: root, height: heading + rows*rowHeight + margin}
	fmt.Fprintf(&d.out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="ui-monospace,Menlo,Consolas,monospace" font-size="10">`+"\n",
		width, d.height)
	fmt.Fprintf(&d.out, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", width, d.height)
	fmt.Fprintf(&d.out, `<text x="%d" y="16" font-size="12">%s</text>`+"\n", margin, html.EscapeString(g.Title))
	if root.Total > 0 {
		d.frame(root, 0, 0, width)
	} else {
		fmt.Fprintf(&d.out, `<text x="%d" y="%d">nothing</text>`+"\n", margin, d.height-margin-5)
	}
	fmt.Fprintf(&d.out, "<script><![CDATA[\n%s]]></script>\n</svg>\n", zoom)
	return d.out.Bytes()
}

// depth returns the number of rows that are needed for the frames whose value is at least least.
func depth(f *Frame, least int64) int {
	deepest := 0
	for _, callee := range f.Callees {
		if callee.Total >= least {
			deepest = max(deepest, depth(callee, least))
		}
	}
	return deepest + 1
}

type drawing struct {
	Graph
	root   *Frame
	height int
	out    bytes.Buffer
}

// frame draws f with the width w at the position x, and its callees above it.
func (d *drawing) frame(f *Frame, level int, x, w float64) {
	share := float64(f.Total) / float64(d.root.Total)
	y := d.height - margin - (level+1)*rowHeight
	name := Short(f.Name)
	fmt.Fprintf(&d.out, `<g data-x="%.2f" data-w="%.2f" data-l="%d"><title>%s: %s, %.1f %%</title>`,
		x, w, level, html.EscapeString(f.Name), d.Format(f.Total), 100*share)
	fmt.Fprintf(&d.out, `<rect x="%.2f" y="%d" width="%.2f" height="%d" fill="%s"/>`, x, y, max(w-0.5, 0.5), rowHeight-1, fill(f.Name))
	fmt.Fprintf(&d.out, `<text x="%.2f" y="%d" data-n="%s">%s</text></g>`+"\n", x+2, y+11, html.EscapeString(name), html.EscapeString(fitting(name, w)))
	for _, callee := range f.Callees {
		of := w * float64(callee.Total) / float64(f.Total)
		if of >= minShare*width {
			d.frame(callee, level+1, x, of)
		}
		x += of
	}
}

// fitting returns the beginning of a name that fits into a frame that is w pixels wide.
func fitting(name string, w float64) string {
	letters := int((w - 4) / letterWidth)
	switch {
	case letters < 3:
		return ""
	case letters >= len(name):
		return name
	}
	return strings.ToValidUTF8(name[:letters-1], "") + "…"
}

// Kind is a group of functions that are drawn in the same color.
type Kind struct{ Name, Color string }

// Kinds are all kinds, in the order of the legend.
var Kinds = []Kind{own, program, library, system, goRuntime, standard}

var (
	own       = Kind{"Dunlin", "#eaa97c"}
	program   = Kind{"the service", "#f0d58a"}
	library   = Kind{"other frameworks and libraries", "#b9d5a0"}
	system    = Kind{"system calls and the network poller", "#a9c3dd"}
	goRuntime = Kind{"Go's runtime and collector", "#d3d3d8"}
	standard  = Kind{"Go's standard library", "#d9bfdc"}
)

const dunlin = "github.com/dunlinhttp/dunlin"

func fill(function string) string { return kindOf(function).Color }

func kindOf(function string) Kind {
	under := func(prefixes ...string) bool {
		for _, p := range prefixes {
			if strings.HasPrefix(function, p) {
				return true
			}
		}
		return false
	}
	first, _, _ := strings.Cut(function, "/")
	switch {
	case function == "all" || under("main.", dunlin+"/bench/", dunlin+"/examples/"):
		return program
	case under(dunlin+".", dunlin+"/"):
		return own
	case under("syscall.", "internal/runtime/syscall", "internal/poll.", "golang.org/x/sys/", "runtime.netpoll", "runtime.futex", "runtime.epoll"):
		return system
	case under("runtime.", "internal/runtime/", "runtime/", "gcWriteBarrier", "gogo"):
		return goRuntime
	case strings.Contains(first, ".") && strings.Contains(function, "/"): // the path of the package begins with a domain
		return library
	}
	return standard
}
