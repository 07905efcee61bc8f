package exchange

import (
	"io"
	"os"
	"sync"
)

// The parts of a Sink's ReadFrom.

// SendByFile is the minimum length, in bytes, of a file sent with sendfile.
const SendByFile = 16 << 10

// RegularFile returns the source of src if sendfile supports it: a large enough regular file in an io.LimitedReader. Otherwise
// both results are nil.
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

// copyBuffers has the buffers of CopyPieces.
var copyBuffers = sync.Pool{New: func() any { return new([16 << 10]byte) }}

// CopyPieces copies src to w, using only w.Write.
func CopyPieces(w io.Writer, src io.Reader) (int64, error) {
	buf := copyBuffers.Get().(*[16 << 10]byte)
	defer copyBuffers.Put(buf)
	type writer struct{ io.Writer } // hides w.ReadFrom
	type reader struct{ io.Reader } // hides src.WriteTo
	return io.CopyBuffer(writer{w}, reader{src}, buf[:])
}
