package peers

import (
	"encoding/binary"
	"encoding/json"
	"errors"
)

// A Packet is one message of the store. Its form is
//
//	version 1 | sender 4 | number of the first message 8 | flags 1 | length of the name 1 | name | (length 4 | message)*
//
// With one of the flags Changes, Held, Ask and Values, the state follows the name instead, as JSON. A packet without messages is a
// beacon: it announces the number of the next message.
type Packet struct {
	Sender   Sender
	First    uint64
	Flags    Flags
	Name     string   // of the topic of Messages, at most 255 bytes
	Messages [][]byte // of a topic without keys
	State    State
}

// Flags are the purposes of a packet.
type Flags uint8

const (
	Hello    Flags = 1 << iota // all others answer with Held
	Tick                       // a beacon that is sent at regular intervals
	Changes                    // the state has new changes
	Held                       // the state has all keys that the sender holds
	Ask                        // the process State.To answers with Values
	Values                     // the state has entries of the sender: all those of some topics, or with To = 0 any
	End                        // the last packet of an answer to Ask
	Complete                   // with Values: the state of the sender lacks no change

	hasState = Changes | Held | Ask | Values
)

// A State has changes of keyed topics.
type State struct {
	To      Sender   `json:",omitzero"` // the process for which Ask and Values are
	Changes []Change `json:",omitempty"`
}

// A Change is a change of a key of a topic.
type Change struct {
	Topic   string
	Key     string
	Data    []byte   // the message
	Left    []byte   `json:",omitempty"` // of a member: the message that deletes the key
	At      uint64   `json:",omitzero"`  // see Channel.Time: after a loss, the change with the greatest value is the latest one
	Gone    bool     `json:",omitzero"`  // the change deletes the key
	Member  bool     `json:",omitzero"`  // Holder begins to hold the key, or stops if Gone is set
	Holder  Sender   `json:",omitzero"`
	Holders []Sender `json:",omitempty"` // in Values: the processes that hold the key
}

const (
	version = 2
	head    = 15 // bytes before the name
)

var errPacket = errors.New("receive packet: invalid form or version")

// count returns the number of numbered messages.
func (p *Packet) count() uint64 { return uint64(len(p.Messages) + len(p.State.Changes)) }

func (p *Packet) encode() []byte {
	b := append(make([]byte, 0, 1024), version)
	b = binary.BigEndian.AppendUint32(b, uint32(p.Sender))
	b = append(binary.BigEndian.AppendUint64(b, p.First), byte(p.Flags), byte(len(p.Name)))
	b = append(b, p.Name...)
	for _, m := range p.Messages {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(m))), m...)
	}
	if p.Flags&hasState != 0 {
		text, _ := json.Marshal(p.State) // it never fails
		b = append(b, text...)
	}
	return b
}

// Parse parses a packet. The messages are parts of b.
func Parse(b []byte) (p Packet, err error) {
	if len(b) < head || b[0] != version || len(b) < head+int(b[14]) {
		return p, errPacket
	}
	p.Sender, p.First, p.Flags = Sender(binary.BigEndian.Uint32(b[1:])), binary.BigEndian.Uint64(b[5:]), Flags(b[13])
	p.Name, b = string(b[head:head+int(b[14])]), b[head+int(b[14]):]
	if p.Flags&hasState != 0 {
		return p, json.Unmarshal(b, &p.State)
	}
	for len(b) > 0 {
		if len(b) < 4 || uint64(len(b)-4) < uint64(binary.BigEndian.Uint32(b)) {
			return p, errPacket
		}
		end := 4 + int(binary.BigEndian.Uint32(b))
		p.Messages, b = append(p.Messages, b[4:end]), b[end:]
	}
	return p, nil
}
