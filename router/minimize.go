package router

import "encoding/binary"

// minimize merges states that accept the same remaining texts, and creates the table. It uses Moore's algorithm: it begins with two
// blocks, the accepting states and the other states, and splits a block while two of its states lead to different blocks. The result
// is nil if the table is too large.
func (b *builder) minimize(start uint16) *automaton {
	a := new(automaton)
	columns := b.byteClasses(&a.class)
	block := make([]int, len(b.states))
	for i, accept := range b.accept {
		if accept {
			block[i] = 1
		}
	}
	blocks := 0
	for {
		// The dead state comes first, so its block has the number 0.
		numbers := make(map[string]int)
		split := make([]int, len(block))
		key := make([]byte, 0, 4*(len(columns)+1))
		for i := range block {
			key = binary.LittleEndian.AppendUint32(key[:0], uint32(block[i]))
			for _, c := range columns {
				key = binary.LittleEndian.AppendUint32(key, uint32(block[b.rows[i][c]]))
			}
			n, ok := numbers[string(key)]
			if !ok {
				n = len(numbers)
				numbers[string(key)] = n
			}
			split[i] = n
		}
		block = split
		if len(numbers) == blocks {
			break
		}
		blocks = len(numbers)
	}

	stride := len(columns) + 1
	if blocks*stride > maxTable {
		return nil
	}
	a.next = make([]uint16, blocks*stride)
	a.start = uint16(block[start] * stride)
	for i := range block {
		row := a.next[block[i]*stride:][:stride]
		if b.accept[i] {
			row[0] = 1
		}
		for j, c := range columns {
			row[j+1] = uint16(block[b.rows[i][c]] * stride)
		}
	}
	return a
}

// byteClasses numbers classes of bytes from 1. Bytes of one class lead to the same state from every state. It returns one byte of each
// class. At most 255 classes exist, because all bytes that do not occur in UTF-8 are in one class.
func (b *builder) byteClasses(class *[256]uint8) (samples []byte) {
	numbers := make(map[string]uint8)
	key := make([]byte, 0, 2*len(b.rows))
	for c := range 256 {
		key = key[:0]
		for i := range b.rows {
			key = binary.LittleEndian.AppendUint16(key, b.rows[i][c])
		}
		n, ok := numbers[string(key)]
		if !ok {
			samples = append(samples, byte(c))
			n = uint8(len(samples))
			numbers[string(key)] = n
		}
		class[c] = n
	}
	return samples
}
