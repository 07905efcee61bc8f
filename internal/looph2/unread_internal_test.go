//go:build linux

package looph2

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// The bytes read are the bytes added, and size is the size of the memory in use.
func TestUnread(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		var u unread
		var twin bytes.Buffer
		if rnd.IntN(2) == 0 {
			first := []byte("what was gathered")
			twin.Write(first)
			u.set(first)
		}
		for range 300 {
			b := make([]byte, rnd.IntN(1<<rnd.IntN(18)))
			if rnd.IntN(2) == 0 {
				for i := range b {
					b[i] = byte(rnd.Uint32())
				}
				twin.Write(b)
				u.add(b)
			} else {
				want := make([]byte, len(b))
				n, _ := twin.Read(want)
				if got := u.read(b); got != n || !bytes.Equal(b[:n], want[:n]) {
					t.Fatalf("read %d bytes, want %d, or others", got, n)
				}
			}
			size := cap(u.mem)
			for _, p := range u.later {
				size += cap(p)
			}
			if u.len != twin.Len() || u.size != size || u.len == 0 && u.size > pieceSize || u.size > 2*u.len+2*pieceSize {
				t.Fatalf("%d bytes in %d, want %d in %d", u.len, u.size, twin.Len(), size)
			}
		}
		if u.drop(); u.len != 0 || u.size != 0 || u.mem != nil {
			t.Errorf("after drop: got %+v", u)
		}
	}
}
