//go:build linux

package engine

import (
	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/invariants"
	"github.com/dunlinhttp/dunlin/internal/memory"
)

// A buffer is pooled memory for data that a connection must keep: input not consumed yet, or output not sent yet. 0 ≤ len(b)
// ≤ cap(b). While it is out of the pool, its capacity is charged to the budget.
type buffer struct {
	b    []byte
	use  memory.Use
	held int             // bytes charged to the budget
	by   *memory.Account // the account that is charged, nil for none
}

// classSizes are the capacities of pooled buffers in bytes. Most partial requests and partial ClientHellos fit the small classes.
// The last class is the usual size of a read buffer and of an output chunk.
var classSizes = [...]int{small0, small1, small2, small3, small4, small5, small6, small7, 4 << 10, 16 << 10, 64 << 10}

// Buffers of the smallClasses are allocated together with their memory, in a size class of the runtime: 256, 320, 384, 512, 768,
// 1024, 1536 and 2048 bytes on 64 bits. All small classes together may keep as many bytes in the pool as one other class.
const (
	small0 = 256 - bufferSize
	small1 = 320 - bufferSize
	small2 = 384 - bufferSize
	small3 = 512 - bufferSize
	small4 = 768 - bufferSize
	small5 = 1<<10 - bufferSize
	small6 = 1536 - bufferSize
	small7 = 2<<10 - bufferSize

	smallClasses = 8
	bufferSize   = 48
)

// A piece is a buffer that is allocated together with its memory.
type piece[Room any] struct {
	buffer
	room Room
}

// newBuffer returns a buffer of a class, or of another size.
func newBuffer(class, size int) (buf *buffer) {
	var room []byte
	switch class {
	case 0:
		p := new(piece[[small0]byte])
		buf, room = &p.buffer, p.room[:0]
	case 1:
		p := new(piece[[small1]byte])
		buf, room = &p.buffer, p.room[:0]
	case 2:
		p := new(piece[[small2]byte])
		buf, room = &p.buffer, p.room[:0]
	case 3:
		p := new(piece[[small3]byte])
		buf, room = &p.buffer, p.room[:0]
	case 4:
		p := new(piece[[small4]byte])
		buf, room = &p.buffer, p.room[:0]
	case 5:
		p := new(piece[[small5]byte])
		buf, room = &p.buffer, p.room[:0]
	case 6:
		p := new(piece[[small6]byte])
		buf, room = &p.buffer, p.room[:0]
	case 7:
		p := new(piece[[small7]byte])
		buf, room = &p.buffer, p.room[:0]
	default:
		buf, room = new(buffer), make([]byte, 0, size)
	}
	buf.b = room
	return buf
}

// maxPooled bounds the bytes that a class keeps for later, so that memory is released after a burst of slow clients. With a
// bounded budget a class keeps at most one part in pooledShare of it.
const (
	maxPooled   = 2 << 20
	pooledShare = 16
)

// bufferPool has a list of free buffers for every class. It serves all loops, since buffers are needed only off the hot path.
type bufferPool struct {
	most int // maximum number of bytes to keep of each class
	free [len(classSizes)]admission.FreeList[*buffer]

	reading  admission.FreeList[*buffer] // read buffers of loops
	readSize int                         // their capacity; buffers with the capacity of a class belong to that class
}

func (p *bufferPool) init(budget *memory.Budget, readSize int) {
	p.most, p.readSize = maxPooled, readSize
	if bound := budget.Bound(); bound > 0 {
		p.most = int(min(bound/pooledShare, maxPooled))
	}
}

// classFor returns the index and the capacity of the class for n bytes. If n exceeds the largest class, it returns
// len(classSizes) and n.
func classFor(n int) (class, size int) {
	for i, size := range classSizes {
		if n <= size {
			return i, size
		}
	}
	return len(classSizes), n
}

// get returns an empty buffer with room for n bytes, charged to an account. It is pooled if n is at most the largest class.
func (p *bufferPool) get(by *memory.Account, use memory.Use, n int) *buffer {
	class, size := classFor(n)
	buf := p.pooled(class)
	if buf == nil {
		buf = newBuffer(class, size)
	}
	buf.charge(by, use)
	return buf
}

// charge charges an account for buf, which is not charged yet.
func (buf *buffer) charge(by *memory.Account, use memory.Use) {
	buf.use, buf.held, buf.by = use, cap(buf.b), by
	by.Force(use, int64(buf.held))
}

// scratch is get without a charge: the budget does not count memory that a driver has only while it runs.
func (p *bufferPool) scratch(n int) *buffer {
	class, size := classFor(n)
	if buf := p.pooled(class); buf != nil {
		return buf
	}
	return newBuffer(class, size)
}

// forReading returns a read buffer for a loop. The budget does not count it.
func (p *bufferPool) forReading() *buffer {
	if _, size := classFor(p.readSize); size == p.readSize && size <= classSizes[len(classSizes)-1] {
		return p.scratch(size)
	}
	if buf, kept := p.reading.Take(); kept {
		return buf
	}
	return &buffer{b: make([]byte, 0, p.readSize)}
}

// unheld returns the bytes of buf, which may be nil, that the budget does not count.
func (buf *buffer) unheld() int64 {
	if buf == nil {
		return 0
	}
	return int64(cap(buf.b) - buf.held)
}

// pooled returns a buffer from the pool, nil if there is none.
func (p *bufferPool) pooled(class int) *buffer {
	if class == len(classSizes) {
		return nil
	}
	buf, _ := p.free[class].Take()
	return buf
}

// copyOf returns a buffer with a copy of b, charged to an account.
func (p *bufferPool) copyOf(by *memory.Account, use memory.Use, b []byte) *buffer {
	buf := p.get(by, use, len(b))
	buf.b = append(buf.b, b...)
	return buf
}

// exactCopyOf is copyOf without spare room and not from the pool, for data that is kept for long.
func (p *bufferPool) exactCopyOf(by *memory.Account, use memory.Use, b []byte) *buffer {
	buf := &buffer{b: append(make([]byte, 0, len(b)), b...)}
	buf.charge(by, use)
	return buf
}

// put returns a buffer to the pool. The caller must not use the buffer and its bytes any more.
func (p *bufferPool) put(buf *buffer) {
	if buf == nil {
		return
	}
	invariants.EndLoan(buf.b[:cap(buf.b)])
	buf.release()
	buf.b = buf.b[:0]
	class, size := classFor(cap(buf.b))
	switch {
	case class < len(classSizes) && cap(buf.b) == size:
		most := p.most / size
		if class < smallClasses {
			most /= smallClasses
		}
		p.free[class].Keep(buf, most)
	case cap(buf.b) == p.readSize:
		p.reading.Keep(buf, max(1, p.most/p.readSize))
	}
}

// abandon leaves a buffer to the collector, and releases its charge.
func (p *bufferPool) abandon(buf *buffer) {
	if buf != nil {
		buf.release()
	}
}

// release releases the charge of the buffer.
func (buf *buffer) release() {
	if buf.by != nil {
		buf.by.Release(buf.use, int64(buf.held))
	}
	buf.held, buf.by = 0, nil
}

// dropFree leaves the free buffers to the collector and returns their size in bytes.
func (p *bufferPool) dropFree() (bytes int64) {
	bytes = int64(p.readSize) * int64(len(p.reading.TakeAll()))
	for class, size := range classSizes {
		bytes += int64(size) * int64(len(p.free[class].TakeAll()))
	}
	return bytes
}
