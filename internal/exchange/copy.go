package exchange

import (
	"io"
	"os"
	"sync"
)

// What a Sink's ReadFrom is made of.

// SendByFile is the length in bytes from which a file is sent by the system.
const SendByFile = 16 << 10

// RegularFile returns what src reads from, if the system can send that by
// itself: a file of some length behind an io.LimitedReader. Else both are nil.
func RegularFile(src io.Reader) (*io.LimitedReader, *os.File) {
	lim, limited := src.(*io.LimitedReader)
	if !limited || lim.N < SendByFile {
		return nil, nil
	}
	f, ok := lim.R.(*os.File)
	if !ok {
		return nil, nil
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, nil
	}
	return lim, f
}

// copyBuffers holds what CopyPieces copies through.
var copyBuffers = sync.Pool{New: func() any { return new([16 << 10]byte) }}

// CopyPieces copies src by w.Write alone.
func CopyPieces(w io.Writer, src io.Reader) (int64, error) {
	buf := copyBuffers.Get().(*[16 << 10]byte)
	defer copyBuffers.Put(buf)
	type writer struct{ io.Writer } // hides w.ReadFrom
	type reader struct{ io.Reader } // hides src.WriteTo
	return io.CopyBuffer(writer{w}, reader{src}, buf[:])
}
