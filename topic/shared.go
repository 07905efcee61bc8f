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

// A share connects a hub with the hubs of other processes over a channel of a store. All hubs add the messages to their logs in the
// order of the channel. Each process numbers its own messages, so that the others detect a lost one. They then treat their
// subscribers as if the log had dropped messages.
//
//	version 1 | sender 4 | number of the first message 8 | flags 1 | length of the name 1 | name | (length 4 | message)*
//
// A packet without messages is a beacon: it announces the number of the next message.
type share struct {
	store   store.Store
	channel string
	sender  [4]byte       // random
	beacon  chan struct{} // requests a beacon

	mu   sync.Mutex // acquired first
	next uint64     // number of the next message

	heard map[[4]byte]uint64 // number of the next message by sender; used by receive only

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
	flagHello     = 1  // the sender has just started: the others answer with beacons

	// knownIDs is the number of the latest shared messages whose IDs a hub knows, for clients that come from other processes.
	knownIDs = 4096
	// maxSenders is the maximum number of entries of share.heard, which also has processes that have ended.
	maxSenders = 4096
	// beaconEvery is the time between beacons, and so the maximum time until a loss is detected.
	beaconEvery = 10 * time.Second
	// shareTimeout limits a call of the store.
	shareTimeout = 5 * time.Second
)

var (
	errShared = errors.New("topic: share: the hub is shared already")
	errPacket = errors.New("topic: receive: invalid packet")
)

// Share connects the hub with the hubs of other processes over a channel of a store, until ctx ends. A message published in one
// process is added to the topics of all. Call Share before the hub is used. Keyed topics, and so members, are not shared.
//
// All hubs have the shared messages in one order. Publish waits until the store has accepted the messages. A process publishes one
// call at a time, and the messages of one call are adjacent. A client that reconnects to another process resumes there, if its last
// message is one of the latest 4,096 of that process. The store delivers a message at most once. When a message is lost, the Policy
// applies to the subscribers of the processes that lack it, as to slow ones. The same happens after an error of Publish, whose
// messages may have been published. A process detects a loss with the next message of the same sender, or after 10 seconds.
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

// tell sends beacons until ctx ends.
func (s *share) tell(ctx context.Context) {
	timer := time.NewTicker(beaconEvery)
	defer timer.Stop()
	for flags := byte(flagHello); ; flags = 0 {
		_ = s.send(ctx, flags, "", nil) // after an error the others detect a loss later
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
	s.next += uint64(len(messages)) // also after an error: the others then detect a loss
	if err := s.store.Publish(ctx, s.channel, b); err != nil {
		return fmt.Errorf("topic: publish: %w", err)
	}
	return nil
}

// A packet has the data of one call of send.
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
		default: // a beacon is requested already
		}
	}
}

// follows reports whether no message is missing between a packet and the previous packet of its sender.
func (s *share) follows(p packet) bool {
	next, known := s.heard[p.sender]
	if !known && len(s.heard) >= maxSenders {
		clear(s.heard)
	}
	s.heard[p.sender] = p.first + uint64(len(p.messages))
	return known && next == p.first || !known && (p.first == 1 || p.sender == s.sender)
}

// receiveMessages adds the messages of a packet to the log of its topic. h.mu is held.
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

// know records the IDs of the messages of a packet. first is the offset of its first message.
func (s *share) know(first uint64, p packet) {
	s.idMu.Lock()
	defer s.idMu.Unlock()
	for i := range uint64(len(p.messages)) {
		s.ids[(first+i)%knownIDs] = origin{first + i, p.sender, p.first + i}
	}
}

// forget removes the IDs of n messages from the offset first on.
func (s *share) forget(first uint64, n int) {
	s.idMu.Lock()
	defer s.idMu.Unlock()
	for i := range uint64(n) {
		s.ids[(first+i)%knownIDs] = origin{}
	}
}

// lose records the loss of shared messages: all subscribers of unkeyed topics have missed messages. h.mu is held.
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

// appendID appends the ID of a shared message. ok is false if it is not known.
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
