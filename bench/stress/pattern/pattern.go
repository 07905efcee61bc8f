// Package pattern makes bytes without repetitions, so that a hash detects bytes that were lost or reordered.
package pattern

import (
	"encoding/binary"
	"math/rand/v2"
)

// longest is the maximum length of a piece, in bytes. It is larger than all buffers between the sender and the
// receiver.
const longest = 96 << 10

// Pieces calls f with the first size bytes of the pattern for a seed, in pieces of different lengths. f must not keep a
// piece. If f returns an error, Pieces ends and returns it.
func Pieces(seed uint64, size int64, f func([]byte) error) error {
	var key [32]byte
	binary.NativeEndian.PutUint64(key[:], seed)
	bytes := rand.NewChaCha8(key)
	lengths := rand.New(rand.NewPCG(seed, 0))
	buf := make([]byte, longest)
	for size > 0 {
		// The random shift makes short pieces as frequent as long pieces.
		n := int64(1 + lengths.IntN(longest>>lengths.IntN(12)))
		piece := buf[:min(n, size)]
		_, _ = bytes.Read(piece) // never fails
		if err := f(piece); err != nil {
			return err
		}
		size -= int64(len(piece))
	}
	return nil
}
