// Package peers connects processes over a channel of a store. The packets of a process are numbered, so that the others detect a loss.
// Beacons show which processes are alive. Questions repair the state of a process after a loss. Package topic shares its hubs with it.
//
//	peers.go   processes and questions    packet.go  the form of packets    ids.go  IDs of messages in all processes
package peers

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"sync"
	"time"

	"github.com/dunlinhttp/dunlin/store"
)

// A Sender identifies a process. It is random, and not 0.
type Sender uint32

const (
	// Beacons is the number of ticks without a packet after which a process is dead.
	Beacons = 3
	// maxPeers is the maximum number of processes that a Channel knows, including ended ones.
	maxPeers = 4096
	// timeout limits a call of the store.
	timeout = 5 * time.Second
)

// A Channel connects this process with the others on a channel of a store. Send is safe for concurrent use. The caller guards the other
// methods by a lock of its own. The function build of Send may acquire that lock.
type Channel struct {
	Self    Sender
	store   store.Store
	channel string

	mu   sync.Mutex
	next uint64 // number of the next message of this process

	peers      map[Sender]*peer
	ticked     bool   // the first tick of this process has come back
	latest     uint64 // greatest Change.At that this process has seen
	incomplete bool   // the state of this process may lack changes
	asking     Sender // process that was asked for its entries; 0 for none

	Due Due
}

// A Due has the packets that this process must send.
type Due struct {
	Ask    Sender   // a question to this process: Ask and Hello; 0 for none
	Held   bool     // the keys that this process holds: Held
	Values []Sender // answers to these processes: Values
	Leaves []Change // of members of dead processes: Changes
	Offers []Change // entries that another process lacks: Values
}

// A peer is a process, also this one.
type peer struct {
	next   uint64 // number of its next message; 0 if the process has sent nothing
	silent int    // number of ticks of this process since its last packet
	listed bool   // the process has sent the list of its keys
	asked  bool   // the process has answered a question since the last loss
}

// New returns the end of a channel for this process. It does not subscribe to the channel.
func New(s store.Store, channel string) *Channel {
	return &Channel{Self: newSender(), store: s, channel: channel, next: 1, peers: map[Sender]*peer{}, incomplete: true}
}

func newSender() (s Sender) {
	for s == 0 {
		var random [4]byte
		_, _ = rand.Read(random[:]) // it never fails
		s = Sender(binary.BigEndian.Uint32(random[:]))
	}
	return s
}

// Send sends the packet that build returns, or nothing if build returns nil. The packets of concurrent calls are sent in the order of
// the calls of build. After an error it is unknown whether the packet was sent.
func (c *Channel) Send(ctx context.Context, build func() *Packet) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	p := build()
	if p == nil {
		return nil
	}
	p.Sender, p.First = c.Self, c.next
	c.next += p.count() // also after an error: the others then detect a loss
	return c.store.Publish(ctx, c.channel, p.encode())
}

// Follows records a packet, and reports whether no message is missing between it and the previous packet of its sender. The first packet
// of an unknown sender follows until the first tick of this process, since the sender is probably older.
func (c *Channel) Follows(p *Packet) bool {
	if len(c.peers) >= maxPeers && c.peers[p.Sender] == nil {
		clear(c.peers)
	}
	q := c.peer(p.Sender)
	next := q.next
	q.next, q.silent = p.First+p.count(), 0
	for i := range p.State.Changes {
		c.latest = max(c.latest, p.State.Changes[i].At)
	}
	return next == p.First || next == 0 && (p.First == 1 || p.Sender == c.Self || !c.ticked)
}

// Question records the request of a packet. asked reports that the question of this process has come back: all packets before it have
// been received, and the asked process answers after them. answer reports that the packet is a part of its answer.
func (c *Channel) Question(p *Packet) (asked, answer bool) {
	if own := p.Sender == c.Self; !own {
		if p.Flags&Hello != 0 {
			c.Due.Held = true
		}
		if p.Flags&Ask != 0 && p.State.To == c.Self {
			c.Due.Values = append(c.Due.Values, p.Sender)
		}
		if c.incomplete && c.asking == 0 && !c.peer(p.Sender).asked {
			c.asking, c.Due.Ask = p.Sender, p.Sender
		}
		return false, p.Flags&Values != 0 && p.State.To == c.Self && p.Sender == c.asking
	}
	return p.Flags&Ask != 0 && p.State.To == c.asking, false
}

// Any reports whether a packet is due.
func (d *Due) Any() bool {
	return d.Ask != 0 || d.Held || d.Values != nil || d.Leaves != nil || d.Offers != nil
}

// peer returns a process.
func (c *Channel) peer(id Sender) *peer {
	p := c.peers[id]
	if p == nil {
		p = new(peer)
		c.peers[id] = p
	}
	return p
}

// Time returns the time of a new change. It is greater than that of all changes that this process has seen.
func (c *Channel) Time() uint64 {
	c.latest = max(c.latest+1, uint64(time.Now().UnixNano()))
	return c.latest
}

// Tick records that a tick of this process has come back. No process ages while the channel does not work.
func (c *Channel) Tick() {
	c.ticked = true
	for _, p := range c.peers {
		p.silent++
	}
	c.incomplete = c.incomplete && c.others()
}

// Dead reports whether a process has ended without notice.
func (c *Channel) Dead(id Sender) bool { return c.peer(id).silent > Beacons }

// Listed reports whether the list of the keys of a process is known, and does not depend on what others believe.
func (c *Channel) Listed(id Sender) bool { return id == c.Self || c.peer(id).listed }

// SetListed records that a process has sent the list of its keys.
func (c *Channel) SetListed(id Sender) { c.peer(id).listed = true }

// Lose records that the state of this process may lack changes.
func (c *Channel) Lose() {
	c.incomplete = true
	for _, p := range c.peers {
		p.asked = false
	}
}

// Incomplete reports whether the state of this process may lack changes.
func (c *Channel) Incomplete() bool { return c.incomplete }

// Retry forgets the question, as its answer may be lost. Another one follows with the next packet of a process.
func (c *Channel) Retry() { c.asking = 0 }

// Answered records the end of an answer. The state is complete after the answer of a process whose state is complete, or the answers of
// all processes. The other processes then get the list of the keys that this process holds.
func (c *Channel) Answered(complete bool) {
	c.peer(c.asking).asked, c.asking, c.Due.Held = true, 0, true
	c.incomplete = !complete && c.others()
}

// others reports whether a process that is alive has not answered.
func (c *Channel) others() bool {
	for id, p := range c.peers {
		if id != c.Self && p.silent <= Beacons && !p.asked {
			return true
		}
	}
	return false
}
