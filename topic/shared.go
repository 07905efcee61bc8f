package topic

import (
	"context"
	"fmt"
	"time"

	"github.com/dunlinhttp/dunlin/internal/peers"
	"github.com/dunlinhttp/dunlin/store"
)

// A share connects a hub with the hubs of other processes. All hubs add the messages to their logs in the order of the channel. After a
// loss, the subscribers of topics without keys are treated as if the log had dropped messages. Keyed topics are repaired, see replica.
type share struct {
	*peers.Channel // guarded by Hub.mu, except Send
	replica
	wake chan struct{} // wakes tell
}

// Share connects the hub with the hubs of other processes over a channel of a store, until ctx ends. A message published in one
// process is added to the topics of all, in one order. Call Share before the hub is used. All processes should have the same settings.
//
// Publish, Put, Delete and Join wait until the store has accepted the messages, at most 5 seconds. A process publishes one call at a
// time, and the messages of one call are adjacent. A client that reconnects to another process resumes there, if its last message is
// one of the latest 4,096 of that process.
//
// The store may lose messages. A process detects a loss with the next message of the sender, or after a third of Settings.Lease. The
// Policy then applies to its subscribers of topics without keys, as after an error of Publish, whose messages may have been published.
// It compares its keyed topics with those of other processes, as a new process does: subscribers get the messages of keys that differ.
func (h *Hub) Share(ctx context.Context, s store.Store, channel string) error {
	if h.shared != nil {
		return errShared
	}
	h.ids = peers.NewIDs(true)
	h.shared = &share{Channel: peers.New(s, channel), wake: make(chan struct{}, 1), replica: replica{unsettled: map[topicKey]bool{}}}
	if err := s.Subscribe(ctx, channel, func(m store.Message) { h.receive(m) }); err != nil {
		h.shared = nil
		return fmt.Errorf("topic: share: %w", err)
	}
	go h.tell(ctx)
	return nil
}

// tell sends beacons, and the packets that others have requested, until ctx ends.
func (h *Hub) tell(ctx context.Context) {
	timer := time.NewTicker(h.settings[0].Lease / peers.Beacons)
	defer timer.Stop()
	_ = h.shared.send(ctx, peers.Packet{Flags: peers.Hello})
	for {
		select {
		case <-timer.C:
			h.mu.Lock()
			h.shared.retry()
			h.mu.Unlock()
			_ = h.shared.send(ctx, peers.Packet{Flags: peers.Tick})
		case <-h.shared.wake:
		case <-ctx.Done():
			return
		}
		h.work(ctx)
	}
}

// send sends a packet. After an error the others detect a loss.
func (s *share) send(ctx context.Context, p peers.Packet) error {
	if err := s.Send(ctx, func() *peers.Packet { return &p }); err != nil {
		return fmt.Errorf("topic: publish: %w", err)
	}
	return nil
}

// receive applies a packet. The store calls it, one call at a time.
func (h *Hub) receive(m store.Message) {
	p, err := peers.Parse(m.Body)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil || m.Lost > 0 || !h.shared.Follows(&p) {
		h.lose()
	}
	if err != nil {
		return
	}
	if len(p.Messages) > 0 && h.receiveMessages(&p) != nil {
		h.lose()
	}
	h.receiveState(&p)
}

// receiveMessages adds the messages of a packet to the log of its topic. h.mu is held.
func (h *Hub) receiveMessages(p *peers.Packet) error {
	if err := h.check(p.Name, "", p.Messages); err != nil {
		return err
	}
	l, err := h.open(p.Name)
	if err != nil {
		return err
	}
	first := h.visible.Load() + 1
	h.ids.Know(first, p.Sender, p.First, len(p.Messages))
	err = h.append(l, change{}, p.Messages)
	if err != nil {
		h.ids.Forget(first, len(p.Messages))
	}
	return err
}

// lose records the loss of shared messages: all subscribers of topics without keys have missed messages, and the keyed topics may lack
// changes. h.mu is held.
func (h *Hub) lose() {
	offset := h.visible.Load() + 1
	h.gone, h.resumable = offset, offset
	h.visible.Store(offset)
	for _, l := range h.logs {
		if !l.set.Keyed {
			l.lose(offset)
		}
	}
	h.shared.Lose()
	if h.shared.confirmed != nil { // the answer may be lost
		h.shared.retry()
	}
}
