package topic

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dunlinhttp/dunlin/store"
)

// A share connects a hub with those of other processes over a channel of a store. The channel has one order, in which all hubs add
// the messages to their logs. Each process numbers its own messages, so that the others see when one is lost: then their subscribers
// are as if the log had dropped messages.
//
//	version 1 | sender 4 | number of the first message 8 | flags 1 | length of the name 1 | name | (length 4 | message)*
//
// A packet without messages is a beacon: it tells the number of the next message.
type share struct {
	store   store.Store
	channel string
	sender  [4]byte       // random
	beacon  chan struct{} // a beacon is due

	mu   sync.Mutex // acquired first
	next uint64     // number of the next message

	heard map[[4]byte]uint64 // by sender: number of the next message. Only receive uses it

	idMu sync.Mutex // acquired last
	ids  [knownIDs]origin
}

// An origin is the ID of a message in all processes.
type origin struct {
	offset uint64 // in this hub
	sender [4]byte
	number uint64
}

const (
	packetVersion = 1
	packetHead    = 15 // without the name
	flagHello     = 1  // the sender has just begun: others send beacons

	// knownIDs is the number of the latest messages whose IDs of other processes are known, for clients that come from there.
	knownIDs = 4096
	// maxSenders limits the memory for processes that have ended.
	maxSenders = 4096
	// beaconEvery is the time between beacons, and so the time after which a loss is noticed at the latest.
	beaconEvery = 10 * time.Second
	// shareTimeout is the time for a call of the store.
	shareTimeout = 5 * time.Second
)

var (
	errShared = errors.New("topic: share: the hub is shared already")
	errPacket = errors.New("topic: receive: invalid packet")
)

// Share connects the hub with the hubs of other processes that share the same channel of a store, until ctx ends: a message that one
// of them publishes is in the topics of all. Call it before the hub is used. Keyed topics, and so members, remain those of a process.
//
// All hubs have the shared messages in one order. Publish returns when the store has the message, so that it may take as long as the
// store does; messages of one process are sent one call after the other, and those of one call are adjacent. A client that returns to
// another process continues there, if that still knows its last message, one of the latest 4,096. The store delivers a message at
// most once: when one is lost, or after an error of Publish, which may have been published all the same, the subscribers of the
// processes that lack it are as slow ones, see Policy. They learn it with the next message of the same sender, or after 10 seconds.
func (h *Hub) Share(ctx context.Context, s store.Store, channel string) error {
	if h.shared != nil {
		return errShared
	}
	sh := &share{store: s, channel: channel, beacon: make(chan struct{}, 1), next: 1, heard: map[[4]byte]uint64{}}
	_, _ = rand.Read(sh.sender[:]) // it never fails
	h.shared = sh
	receive := func(m store.Message) { h.receive(m) }
	if err := s.Subscribe(ctx, channel, receive); err != nil {
		h.shared = nil
		return fmt.Errorf("topic: share: %w", err)
	}
	go sh.tell(ctx)
	return nil
}

// tell sends beacons.
func (s *share) tell(ctx context.Context) {
	timer := time.NewTicker(beaconEvery)
	defer timer.Stop()
	for flags := byte(flagHello); ; flags = 0 {
		_ = s.send(ctx, flags, "", nil) // without it the others notice a loss later
		select {
		case <-timer.C:
		case <-s.beacon:
		case <-ctx.Done():
			return
		}
	}
}

// send sends messages of a topic, or a beacon.
func (s *share) send(ctx context.Context, flags byte, name string, messages [][]byte) error {
	ctx, cancel := context.WithTimeout(ctx, shareTimeout)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	b := append(append(make([]byte, 0, 1024), packetVersion), s.sender[:]...)
	b = append(binary.BigEndian.AppendUint64(b, s.next), flags, byte(len(name)))
	b = append(b, name...)
	for _, m := range messages {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(m))), m...)
	}
	s.next += uint64(len(messages)) // after an error, too: the others begin anew then
	if err := s.store.Publish(ctx, s.channel, b); err != nil {
		return fmt.Errorf("topic: publish: %w", err)
	}
	return nil
}

// A packet is what one call of send has sent.
type packet struct {
	sender   [4]byte
	name     string
	first    uint64
	hello    bool
	messages [][]byte
}

// parsePacket parses a packet. The messages are parts of b.
func parsePacket(b []byte) (p packet, err error) {
	if len(b) < packetHead || b[0] != packetVersion || len(b) < packetHead+int(b[14]) {
		return p, errPacket
	}
	p.sender, p.first, p.hello = [4]byte(b[1:5]), binary.BigEndian.Uint64(b[5:]), b[13]&flagHello != 0
	p.name, b = string(b[packetHead:packetHead+int(b[14])]), b[packetHead+int(b[14]):]
	for len(b) > 0 {
		if len(b) < 4 || uint64(len(b)-4) < uint64(binary.BigEndian.Uint32(b)) {
			return p, errPacket
		}
		end := 4 + int(binary.BigEndian.Uint32(b))
		p.messages, b = append(p.messages, b[4:end]), b[end:]
	}
	return p, nil
}

// receive adds the messages of a packet to their topic. The store calls it, one call at a time.
func (h *Hub) receive(m store.Message) {
	p, err := parsePacket(m.Body)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil || m.Lost > 0 || !h.shared.follows(p) {
		h.lose()
	}
	if err == nil && len(p.messages) > 0 && h.receiveMessages(p) != nil {
		h.lose()
	}
	if p.hello && p.sender != h.shared.sender {
		select {
		case h.shared.beacon <- struct{}{}:
		default: // one is due
		}
	}
}

// follows reports whether nothing is missing between a packet and the one before of its sender.
func (s *share) follows(p packet) bool {
	next, known := s.heard[p.sender]
	if !known && len(s.heard) >= maxSenders {
		clear(s.heard)
	}
	s.heard[p.sender] = p.first + uint64(len(p.messages))
	return known && next == p.first || !known && (p.first == 1 || p.sender == s.sender)
}

// receiveMessages adds messages. h.mu is held.
func (h *Hub) receiveMessages(p packet) error {
	if err := h.check(p.name, change{}, p.messages); err != nil {
		return err
	}
	l, err := h.open(p.name)
	if err != nil {
		return err
	}
	first := h.visible.Load() + 1
	h.shared.know(first, p)
	err = h.append(l, change{}, p.messages)
	if err != nil {
		h.shared.forget(first, len(p.messages))
	}
	return err
}

// know notes the IDs of messages, which have the offsets from first on.
func (s *share) know(first uint64, p packet) {
	s.idMu.Lock()
	defer s.idMu.Unlock()
	for i := range uint64(len(p.messages)) {
		s.ids[(first+i)%knownIDs] = origin{first + i, p.sender, p.first + i}
	}
}

// forget removes the IDs of n messages.
func (s *share) forget(first uint64, n int) {
	s.idMu.Lock()
	defer s.idMu.Unlock()
	for i := range uint64(n) {
		s.ids[(first+i)%knownIDs] = origin{}
	}
}

// lose notes that shared messages are lost. h.mu is held.
func (h *Hub) lose() {
	offset := h.visible.Load() + 1
	h.gone = offset
	h.visible.Store(offset)
	for _, l := range h.logs {
		if !l.set.Keyed {
			l.lose(offset)
		}
	}
}

// appendID appends the ID of a message of another process. ok is false if it is not known.
func (s *share) appendID(b []byte, offset uint64) (_ []byte, ok bool) {
	s.idMu.Lock()
	defer s.idMu.Unlock()
	o := &s.ids[offset%knownIDs]
	if o.offset != offset || o.number == 0 {
		return b, false
	}
	return strconv.AppendUint(append(hex.AppendEncode(b, o.sender[:]), '-'), o.number, 10), true
}

// offsetOf returns the offset of an ID of any process.
func (s *share) offsetOf(id string) (offset uint64, ok bool) {
	text, digits, _ := strings.Cut(id, "-")
	sender, err := hex.DecodeString(text)
	number, err2 := strconv.ParseUint(digits, 10, 64)
	if err != nil || err2 != nil {
		return 0, false
	}
	s.idMu.Lock()
	defer s.idMu.Unlock()
	for i := range s.ids {
		if o := &s.ids[i]; o.number == number && o.number > 0 && bytes.Equal(o.sender[:], sender) {
			return o.offset, true
		}
	}
	return 0, false
}
