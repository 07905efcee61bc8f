// Package flame draws profiles as flame graphs. A graph is an SVG without external files. The title of each frame contains its
// share of the total, and a click on a frame enlarges the frame.
package flame

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
)

// A Frame is a function in a tree of calls, with the sums of its samples.
type Frame struct {
	Name     string // name of the function with the path of its package
	Total    int64  // sum of Self and of Total of all Callees
	Self     int64
	Callees  []*Frame // sorted by name
	children map[string]*Frame
}

// Tree returns the tree of the stacks of p. The values are those of one sample type, such as "cpu" or "alloc_space".
func Tree(p *profile.Profile, sampleType string) (*Frame, error) {
	at := slices.IndexFunc(p.SampleType, func(t *profile.ValueType) bool { return t.Type == sampleType })
	if at < 0 {
		return nil, fmt.Errorf("the profile has no samples of type %s", sampleType)
	}
	root := &Frame{Name: "all"}
	for _, sample := range p.Sample {
		root.add(stackOf(sample), sample.Value[at])
	}
	root.arrange()
	return root, nil
}

// stackOf returns the functions of a sample, the outermost caller first. The lines of a location belong to one function and to
// the functions that are inlined into it, the innermost first.
func stackOf(sample *profile.Sample) []string {
	var stack []string
	for _, location := range slices.Backward(sample.Location) {
		for _, line := range slices.Backward(location.Line) {
			if line.Function != nil {
				stack = append(stack, line.Function.Name)
			}
		}
	}
	return stack
}

func (f *Frame) add(stack []string, value int64) {
	f.Total += value
	if len(stack) == 0 {
		f.Self += value
		return
	}
	child := f.children[stack[0]]
	if child == nil {
		child = &Frame{Name: stack[0]}
		if f.children == nil {
			f.children = map[string]*Frame{}
		}
		f.children[stack[0]] = child
	}
	child.add(stack[1:], value)
}

// arrange sorts the callees and removes callees without samples. In the difference of two profiles, most stacks have none.
func (f *Frame) arrange() {
	for _, child := range f.children {
		if child.Total > 0 {
			child.arrange()
			f.Callees = append(f.Callees, child)
		}
	}
	f.children = nil
	slices.SortFunc(f.Callees, func(a, b *Frame) int { return cmp.Compare(a.Name, b.Name) })
}

// Functions returns the n functions with the largest values of their own, without their callees, as pprof's top lists them.
func (f *Frame) Functions(n int) []Function {
	self := map[string]int64{}
	f.each(func(frame *Frame) { self[frame.Name] += frame.Self })
	var all []Function
	for name, value := range self {
		if value > 0 {
			all = append(all, Function{Name: Short(name), Self: value})
		}
	}
	slices.SortFunc(all, func(a, b Function) int {
		return cmp.Or(cmp.Compare(b.Self, a.Self), cmp.Compare(a.Name, b.Name))
	})
	return all[:min(n, len(all))]
}

// A Function is a line of the list of Functions.
type Function struct {
	Name string // without the path of the package
	Self int64
}

func (f *Frame) each(do func(*Frame)) {
	do(f)
	for _, callee := range f.Callees {
		callee.each(do)
	}
}

// Short returns the name of a function without the path of its package.
func Short(name string) string {
	path := name
	if bracket := strings.IndexByte(path, '['); bracket >= 0 { // the type arguments also contain paths
		path = path[:bracket]
	}
	return name[strings.LastIndexByte(path, '/')+1:]
}
