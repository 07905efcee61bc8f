// Package pattern makes bytes that differ everywhere: whoever hashes them sees when some were lost
// or came in another order.
package pattern

import (
	"encoding/binary"
	"math/rand/v2"
)

// longest is the length of the longest piece, in bytes: more than any buffer on the way.
const longest = 96 << 10

// Pieces gives the first size bytes of the pattern of a seed to f, in pieces of many lengths. f may
// not keep them. It returns the first error of f.
func Pieces(seed uint64, size int64, f func([]byte) error) error {
	var key [32]byte
	binary.NativeEndian.PutUint64(key[:], seed)
	bytes := rand.NewChaCha8(key)
	lengths := rand.New(rand.NewPCG(seed, 0))
	buf := make([]byte, longest)
	for size > 0 {
		// Halving at random makes short pieces as frequent as long ones.
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
