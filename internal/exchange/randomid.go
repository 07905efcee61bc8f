package exchange

import "math/rand/v2"

const (
	idAlphabet = "0123456789abcdefghjkmnpqrstvwxyz" // Crockford's base 32
	idLength   = 26
)

// idPairs has the two digits of each number of ten bits, the lower first.
var idPairs = func() (pairs [1 << 10][2]byte) {
	for i := range pairs {
		pairs[i] = [2]byte{idAlphabet[i&31], idAlphabet[i>>5]}
	}
	return pairs
}()

// RandomID returns 128 random bits in base 32: unique for all purposes of tracing, but no secret.
func (s *Strings) RandomID() string {
	var id [idLength]byte
	for half := 0; half < len(id); half += idLength / 2 {
		bits := rand.Uint64()
		for i := 0; i < idLength/2-1; i += 2 {
			*(*[2]byte)(id[half+i:]) = idPairs[bits&(1<<10-1)]
			bits >>= 10
		}
		id[half+idLength/2-1] = idAlphabet[bits]
	}
	return s.Copy(id[:])
}
