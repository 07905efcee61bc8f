package exchange

import (
	"io"
	"os"
	"sync"
)

// Helpers for implementations of Sink.ReadFrom.

// MinSendfile is the minimum length, in bytes, of a file sent with sendfile.
const MinSendfile = 16 << 10

// RegularFile returns src and its file if src is an io.LimitedReader of at least MinSendfile bytes over a regular file, which
// sendfile supports. Otherwise both results are nil.
func RegularFile(src io.Reader) (*io.LimitedReader, *os.File) {
	lim, limited := src.(*io.LimitedReader)
	if !limited || lim.N < MinSendfile {
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
