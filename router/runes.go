package router

import (
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
)

// A runeMachine runs a compiled expression. Its input is runes, and its state is a set of instructions.
//
// Runes are grouped in classes. No instruction and no assertion of the expression distinguishes the runes of a class, so one
// rune of a class represents all of them. A set of instructions is the state immediately after a rune. Empty-width
// instructions are not yet followed, because \b and $ depend on the next rune. For the same reason a set includes the
// previous rune.
type runeMachine struct {
	prog    *syntax.Prog
	starts  []rune  // first runes of the intervals, ascending from 0
	classes []int   // class of each interval between two values in starts
	samples []rune  // one rune of each class
	invalid int     // class of an invalid byte, which counts as U+FFFD, as in package regexp
	sets    []pcSet // sets by number; number 0 is the empty set
	numbers map[string]int
	steps   map[[2]int]int // number of the next set, by the number of the set and the class
	words   bool           // the expression has \b or \B
	lines   bool           // the expression has multi-line ^ or $
}

type pcSet struct {
	pcs    []uint32
	before rune // the result of the method like for the previous rune; -1 at the beginning
}

// maxClassWork is the maximum product of the numbers of instructions and intervals. The product is the cost of finding the
// classes.
const maxClassWork = 1 << 18

// newRuneMachine returns the machine of an expression, or nil if the expression is too large.
func newRuneMachine(prog *syntax.Prog) *runeMachine {
	m := &runeMachine{prog: prog, numbers: make(map[string]int), steps: make(map[[2]int]int)}
	m.number(pcSet{})
	m.starts = []rune{0, utf8.RuneError, utf8.RuneError + 1}
	for i := range prog.Inst {
		m.addBounds(&prog.Inst[i])
	}
	if m.words {
		m.starts = append(m.starts, '0', '9'+1, 'A', 'Z'+1, '_', '_'+1, 'a', 'z'+1)
	}
	if m.lines {
		m.starts = append(m.starts, '\n', '\n'+1)
	}
	slices.Sort(m.starts)
	m.starts = slices.Compact(m.starts)
	if len(m.starts)*len(prog.Inst) > maxClassWork {
		return nil
	}
	m.findClasses()
	m.invalid = m.classOf(utf8.RuneError)
	return m
}

// addBounds adds the bounds of the ranges of runes that an instruction distinguishes.
func (m *runeMachine) addBounds(inst *syntax.Inst) {
	switch inst.Op {
	case syntax.InstEmptyWidth:
		op := syntax.EmptyOp(inst.Arg)
		m.words = m.words || op&(syntax.EmptyWordBoundary|syntax.EmptyNoWordBoundary) != 0
		m.lines = m.lines || op&(syntax.EmptyBeginLine|syntax.EmptyEndLine) != 0
	case syntax.InstRuneAnyNotNL:
		m.starts = append(m.starts, '\n', '\n'+1)
	case syntax.InstRune, syntax.InstRune1:
		if len(inst.Rune) > 1 {
			for i := 0; i < len(inst.Rune); i += 2 {
				m.starts = append(m.starts, inst.Rune[i], inst.Rune[i+1]+1)
			}
			return
		}
		// Add a single rune, and its case variants if the instruction ignores case.
		for r, first := inst.Rune[0], inst.Rune[0]; ; {
			m.starts = append(m.starts, r, r+1)
			if r = unicode.SimpleFold(r); r == first {
				return
			}
		}
	}
}

// findClasses assigns the same class to intervals that every instruction and assertion treats alike.
func (m *runeMachine) findClasses() {
	numbers := make(map[string]int)
	var signature []byte
	for _, r := range m.starts {
		signature = signature[:0]
		for i := range m.prog.Inst {
			if inst := &m.prog.Inst[i]; isRuneInst(inst) {
				bit := byte('0')
				if inst.MatchRune(r) {
					bit = '1'
				}
				signature = append(signature, bit)
			}
		}
		signature = append(signature, string(m.like(r))...)
		class, ok := numbers[string(signature)]
		if !ok {
			class = len(m.samples)
			numbers[string(signature)] = class
			m.samples = append(m.samples, r)
		}
		m.classes = append(m.classes, class)
	}
}

func isRuneInst(inst *syntax.Inst) bool {
	switch inst.Op {
	case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		return true
	}
	return false
}

// like returns a rune that represents r: the assertions of this expression do not distinguish the two runes.
func (m *runeMachine) like(r rune) rune {
	switch {
	case m.words && syntax.IsWordChar(r):
		return 'a'
	case m.lines && r == '\n':
		return '\n'
	}
	return ' '
}

func (m *runeMachine) classOf(r rune) int {
	i, found := slices.BinarySearch(m.starts, r)
	if !found {
		i--
	}
	return m.classes[i]
}

// uniform returns the class of the runes from lo to hi, or -1 if they have different classes.
func (m *runeMachine) uniform(lo, hi rune) int {
	i, found := slices.BinarySearch(m.starts, lo)
	if !found {
		i--
	}
	class := m.classes[i]
	for i++; i < len(m.starts) && m.starts[i] <= hi; i++ {
		if m.classes[i] != class {
			return -1
		}
	}
	return class
}

// first returns the number of the set before the first rune.
func (m *runeMachine) first() int {
	return m.number(pcSet{pcs: []uint32{uint32(m.prog.Start)}, before: -1})
}

// number returns the number of a set. The instructions of the set must be sorted.
func (m *runeMachine) number(s pcSet) int {
	if len(s.pcs) == 0 {
		s.before = 0
	}
	key := make([]byte, 0, 4*len(s.pcs)+4)
	key = append(key, string(s.before)...)
	for _, pc := range s.pcs {
		key = append(key, byte(pc), byte(pc>>8), byte(pc>>16), byte(pc>>24))
	}
	if s.before < 0 {
		key = append(key, '^')
	}
	n, ok := m.numbers[string(key)]
	if !ok {
		n = len(m.sets)
		m.numbers[string(key)] = n
		m.sets = append(m.sets, s)
	}
	return n
}

// step returns the number of the set after a rune of the class.
func (m *runeMachine) step(set, class int) int {
	key := [2]int{set, class}
	if next, ok := m.steps[key]; ok {
		return next
	}
	r := m.samples[class]
	var pcs []uint32
	m.follow(set, r, func(inst *syntax.Inst) {
		if isRuneInst(inst) && inst.MatchRune(r) {
			pcs = append(pcs, inst.Out)
		}
	})
	slices.Sort(pcs)
	next := m.number(pcSet{pcs: slices.Compact(pcs), before: m.like(r)})
	m.steps[key] = next
	return next
}

// accepts reports whether a value may end after the set.
func (m *runeMachine) accepts(set int) bool {
	found := false
	m.follow(set, -1, func(inst *syntax.Inst) {
		found = found || inst.Op == syntax.InstMatch
	})
	return found
}

// follow calls visit for the instructions that are reachable from a set without consuming a rune. next is the next rune, or
// -1 at the end.
func (m *runeMachine) follow(set int, next rune, visit func(*syntax.Inst)) {
	holds := syntax.EmptyOpContext(m.sets[set].before, next)
	seen := make([]bool, len(m.prog.Inst))
	stack := slices.Clone(m.sets[set].pcs)
	for len(stack) > 0 {
		pc := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[pc] {
			continue
		}
		seen[pc] = true
		inst := &m.prog.Inst[pc]
		switch inst.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			stack = append(stack, inst.Out, inst.Arg)
		case syntax.InstCapture, syntax.InstNop:
			stack = append(stack, inst.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(inst.Arg)&^holds == 0 {
				stack = append(stack, inst.Out)
			}
		default:
			visit(inst)
		}
	}
}
