//go:build unix

package admission_test

import (
	"syscall"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/admission"
)

func TestDescriptorsAreLeftToTheProgram(t *testing.T) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	n, most := uint64(admission.DescriptorsForConnections()), uint64(limit.Cur)
	if n == 0 || n > most-most/20 || most < 1<<31 && n < most-most/20 {
		t.Errorf("%d connections of %d descriptors", n, most)
	}
}
