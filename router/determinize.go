package router

import (
	"regexp/syntax"
	"unicode/utf8"
)

// This file builds automata. Package regexp/syntax compiles an expression to a program that reads runes. The automaton is a table for
// bytes. Therefore a state of the automaton is a pair: the set of program instructions that may be next, and the part of a UTF-8
// sequence that was read since the last complete rune:
//
//	bytes     61      E2      82      AC      'a' and '€'
//	state  S0    S1   (S1,E2) (S1,E2 82)  S2
//
// A class is a set of runes that the expression does not distinguish. If all runes that begin with the bytes read so far are in one
// class, the state has this class, and not the bits of the rune. This keeps the number of states small. As in package regexp, each
// byte of an invalid sequence counts as U+FFFD. An invalid sequence is detected at the first byte that cannot continue it. This byte
// is then read once more, as the beginning of the next sequence.

const (
	// maxStates is the maximum number of states during construction. maxTable is the maximum number of entries of the table, of two
	// bytes each. Typical constraints of path segments do not reach these limits. Large Unicode classes reach them, and are matched
	// by package regexp.
	maxStates = 2048
	maxTable  = 1 << 15
)

// A sequence is a partly read UTF-8 sequence. The zero value represents no bytes.
type sequence struct {
	have, need int  // numbers of bytes that were read and that are missing
	lo, hi     byte // bounds of the next byte
	class      int  // class of all runes that begin with these bytes, or -1
	bits       rune // value of the bytes that were read, only if class is -1
}

// A builderState is a state of the automaton.
type builderState struct {
	set int // number of a pcSet of the rune machine, see runes.go
	seq sequence
}

// A builder builds an automaton.
type builder struct {
	machine *runeMachine
	numbers map[builderState]uint16 // numbers of states, which are the indices of the following slices
	states  []builderState
	rows    [][256]uint16 // number of the next state for each byte
	accept  []bool        // a value may end in this state
	tooBig  bool          // there are more than maxStates states
}

// compileAutomaton returns the automaton that matches whole values against expr, or nil if the automaton would be too large. expr
// must be valid.
func compileAutomaton(expr string) *automaton {
	re, err := syntax.Parse(wholeValue(expr), syntax.Perl)
	if err != nil {
		return nil
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return nil
	}
	b := &builder{machine: newRuneMachine(prog), numbers: make(map[builderState]uint16)}
	if b.machine == nil {
		return nil
	}
	b.number(builderState{}) // dead state
	start := b.number(builderState{set: b.machine.first()})
	for n := 0; n < len(b.states) && !b.tooBig; n++ {
		b.fill(n)
	}
	if b.tooBig {
		return nil
	}
	return b.minimize(start)
}

// number returns the number of a state. It adds a state that is new. For a hopeless state it returns the number of the dead state.
func (b *builder) number(s builderState) uint16 {
	if s.set == 0 || b.hopeless(s) {
		s = builderState{}
	}
	n, ok := b.numbers[s]
	if !ok {
		if len(b.states) == maxStates {
			b.tooBig = true
			return 0
		}
		n = uint16(len(b.states))
		b.numbers[s] = n
		b.states = append(b.states, s)
		b.rows = append(b.rows, [256]uint16{})
		b.accept = append(b.accept, b.machine.accepts(b.broken(s).set))
	}
	return n
}

// hopeless reports whether no value can match from state s on, whatever the rest of the partly read sequence is.
func (b *builder) hopeless(s builderState) bool {
	return s.seq.have > 0 && s.seq.class >= 0 &&
		b.machine.step(s.set, s.seq.class) == 0 && b.broken(s).set == 0
}

// broken returns the state that results if the bytes of the partly read sequence are invalid.
func (b *builder) broken(s builderState) builderState {
	for range s.seq.have {
		s.set = b.machine.step(s.set, b.machine.invalid)
	}
	return builderState{set: s.set}
}

// fill computes the row of the state with number n.
func (b *builder) fill(n int) {
	s := b.states[n]
	if s.set == 0 {
		return
	}
	// Adjacent bytes often lead to the same state, so the last result is reused.
	var last builderState
	var number uint16
	for c := range 256 {
		if next := b.next(s, byte(c)); next != last {
			last, number = next, b.number(next)
		}
		b.rows[n][c] = number
	}
}

// next returns the state that follows s when the byte c is read.
func (b *builder) next(s builderState, c byte) builderState {
	if s.seq.have > 0 {
		if c < s.seq.lo || c > s.seq.hi {
			return b.next(b.broken(s), c)
		}
		bits := s.seq.bits<<6 | rune(c&0x3F)
		if s.seq.need > 1 {
			return builderState{s.set, b.sequence(s.seq.have+1, s.seq.need-1, 0x80, 0xBF, bits, s.seq.class)}
		}
		class := s.seq.class
		if class < 0 {
			class = b.machine.classOf(bits)
		}
		return builderState{set: b.machine.step(s.set, class)}
	}
	// These are the well-formed sequences of RFC 3629 section 4, by their first byte.
	switch {
	case c < utf8.RuneSelf:
		return builderState{set: b.machine.step(s.set, b.machine.classOf(rune(c)))}
	case 0xC2 <= c && c <= 0xDF:
		return builderState{s.set, b.sequence(1, 1, 0x80, 0xBF, rune(c&0x1F), -1)}
	case 0xE0 <= c && c <= 0xEF:
		lo, hi := byte(0x80), byte(0xBF)
		if c == 0xE0 {
			lo = 0xA0
		} else if c == 0xED {
			hi = 0x9F
		}
		return builderState{s.set, b.sequence(1, 2, lo, hi, rune(c&0x0F), -1)}
	case 0xF0 <= c && c <= 0xF4:
		lo, hi := byte(0x80), byte(0xBF)
		if c == 0xF0 {
			lo = 0x90
		} else if c == 0xF4 {
			hi = 0x8F
		}
		return builderState{s.set, b.sequence(1, 3, lo, hi, rune(c&0x07), -1)}
	}
	return builderState{set: b.machine.step(s.set, b.machine.invalid)}
}

// sequence returns a partly read sequence. If all runes of the sequence have the same class, their bits are not stored.
func (b *builder) sequence(have, need int, lo, hi byte, bits rune, class int) sequence {
	if class < 0 {
		shift := 6 * (need - 1)
		first := (bits<<6 | rune(lo&0x3F)) << shift
		last := (bits<<6|rune(hi&0x3F))<<shift | (1<<shift - 1)
		class = b.machine.uniform(first, last)
	}
	if class >= 0 {
		bits = 0
	}
	return sequence{have, need, lo, hi, class, bits}
}
