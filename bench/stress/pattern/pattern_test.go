package pattern_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/dunlinhttp/dunlin/bench/stress/pattern"
)

func gathered(t *testing.T, seed uint64, size int64) (all []byte, pieces int) {
	t.Helper()
	err := pattern.Pieces(seed, size, func(piece []byte) error {
		all = append(all, piece...)
		pieces++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all, pieces
}

func TestPieces(t *testing.T) {
	const size = 1 << 20
	one, pieces := gathered(t, 1, size)
	if again, _ := gathered(t, 1, size); len(one) != size || !bytes.Equal(one, again) {
		t.Errorf("%d and %d bytes, which should be the same %d", len(one), len(again), size)
	}
	if other, _ := gathered(t, 2, size); bytes.Equal(one[:64], other[:64]) {
		t.Error("two seeds have the same pattern")
	}
	if pieces < 20 || bytes.Equal(one[:64], one[64:128]) {
		t.Errorf("%d pieces, of a pattern that begins with %x", pieces, one[:128])
	}
}

func TestPiecesEndsWithTheFirstError(t *testing.T) {
	enough := errors.New("enough")
	calls := 0
	err := pattern.Pieces(1, 1<<30, func([]byte) error { calls++; return enough })
	if err != enough || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
}
