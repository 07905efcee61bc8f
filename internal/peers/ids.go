package peers

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
	"sync"
)

// known is the number of messages in a table of IDs.
const known = 4096

// IDs has the IDs of messages. A process has each message at an offset of its own. The ID of a position is an epoch and the offset. The
// ID of one of the latest shared messages is its sender and its number, which are the same in all processes. The methods are safe for
// concurrent use.
type IDs struct {
	epoch string // random

	mu  sync.Mutex
	ids *[known]origin // of shared messages: the one of an offset is at offset%known; nil if nothing is shared
}

// NewIDs returns the IDs of a hub.
func NewIDs(shared bool) *IDs {
	t := &IDs{epoch: string(appendSender(nil, newSender()))}
	if shared {
		t.ids = new([known]origin)
	}
	return t
}

// An origin is the ID of a message.
type origin struct {
	offset uint64
	sender Sender
	number uint64 // 0 for none
}

// Know records the IDs of n messages. offset and number are those of the first one.
func (t *IDs) Know(offset uint64, from Sender, number uint64, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range uint64(n) {
		t.ids[(offset+i)%known] = origin{offset + i, from, number + i}
	}
}

// Forget removes the IDs of n messages from an offset on.
func (t *IDs) Forget(offset uint64, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range uint64(n) {
		t.ids[(offset+i)%known] = origin{}
	}
}

// Append appends the ID of a message or of another position.
func (t *IDs) Append(b []byte, offset uint64) []byte {
	if t.ids != nil {
		t.mu.Lock()
		o := t.ids[offset%known]
		t.mu.Unlock()
		if o.offset == offset && o.number > 0 {
			return strconv.AppendUint(append(appendSender(b, o.sender), '-'), o.number, 10)
		}
	}
	return strconv.AppendUint(append(append(b, t.epoch...), '-'), offset, 10)
}

func appendSender(b []byte, s Sender) []byte {
	return hex.AppendEncode(b, binary.BigEndian.AppendUint32(nil, uint32(s)))
}

// Offset returns the offset of an ID, which may be that of another process. The offset may be one that the hub has not reached.
func (t *IDs) Offset(id string) (offset uint64, ok bool) {
	text, digits, _ := strings.Cut(id, "-")
	from, err := strconv.ParseUint(text, 16, 32)
	number, err2 := strconv.ParseUint(digits, 10, 64)
	switch {
	case err != nil || err2 != nil:
		return 0, false
	case text == t.epoch:
		return number, true
	case t.ids == nil || number == 0:
		return 0, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.ids {
		if o := &t.ids[i]; o.number == number && o.sender == Sender(from) {
			return o.offset, true
		}
	}
	return 0, false
}
