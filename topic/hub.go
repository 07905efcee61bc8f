package topic

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/ext"
)

// A Policy says what happens to a subscriber whose next message is no longer in the log of its topic.
type Policy uint8

const (
	// Resync tells the subscriber to load its state anew, and continues with the next message.
	Resync Policy = iota
	// Skip continues with the oldest message in the log.
	Skip
	// Cut closes the connection: that of a WebSocket with 1008.
	Cut
)

// Settings are the settings of topics. The zero value has the defaults.
type Settings struct {
	// MaxMessages and MaxBytes limit the log of a topic. The oldest messages are dropped first. A message with its encodings counts
	// about twice its length. Defaults: 256, and 256 KiB.
	MaxMessages int
	MaxBytes    int

	// Slow is the policy for slow subscribers. Default: Resync.
	Slow Policy

	// Keyed: the log has the latest message of each key, see Topic.Put. New subscribers begin with all of them.
	Keyed bool

	// Reconnect is the time over which clients should come back when the server drains. It is told to event streams, and applies to
	// all topics of a hub as given to New. Default: 5 s.
	Reconnect time.Duration

	// Bare: messages to WebSockets are the published data alone. By default they begin with a line: the ID, a space, and the name of
	// the topic. A subscriber of bare topics cannot resume, and
	// only the announcement of missed messages remains.
	Bare bool

	// Wildcards: subscribers may have all topics whose names begin with a prefix, by its name and "*": "orders/*", or "*". The messages
	// are kept in a log for each wildcard, too, with these settings, from the first subscription on. It has no keys: messages of
	// keyed topics come as others. The function that allows subscriptions gets the name with its "*".
	Wildcards bool
}

const (
	defaultMessages = 256
	defaultBytes    = 256 << 10
	maxName         = 255
	// maxSubscriptions is the maximum number of topics of one subscriber.
	maxSubscriptions = 64
	// idleAfter is the time after the last message when the log of a topic without subscribers may be dropped.
	idleAfter = 5 * time.Minute
	// looked is the number of other logs, for each new one, that are dropped if they are idle.
	looked = 4
	// inspected is the number of logs that are dropped at once, if they have no subscribers, when there is no memory.
	inspected = 32
)

var (
	// ErrMemory is the error for a message or a topic for which the app's budget has no memory.
	ErrMemory = errors.New("topic: no memory")

	// ErrName is the error for a name that no topic can have: it is empty, longer than 255 bytes, not UTF-8, has a space or a control
	// character, or is "resync"; or it is a wildcard, where none is possible.
	ErrName = errors.New("topic: invalid name")

	// ErrTooMany is the error for a connection with more than 64 subscriptions, or 64 memberships.
	ErrTooMany = errors.New("topic: too many subscriptions")

	// ErrFull is the error for a key of a topic whose log is full of members.
	ErrFull = errors.New("topic: the log is full of members")

	errNone  = errors.New("topic: subscribe: no topic is named")
	errKeyed = errors.New("topic: publish: keyed topics need Put, Delete or Join with a key, and others Publish")
	errHub   = errors.New("topic: subscribe: the connection has subscriptions of another hub")
	errEmpty = errors.New("topic: publish: empty message")
	errLong  = errors.New("topic: publish: message is longer than the log of its topic")
	errText  = errors.New("topic: publish: message is not UTF-8")
)

// A Hub has the topics of an app. Its methods are safe for concurrent use, except Set.
type Hub struct {
	memory   *ext.CacheMemory
	epoch    string // of the IDs
	settings []named

	visible atomic.Uint64 // offset of the newest message; all up to it are in their logs

	// mu is acquired after the lock of a feed, and before that of a log.
	mu   sync.Mutex
	logs map[string]*log
	gone uint64 // the newest offset in a log that was dropped
	wild int    // number of logs of wildcards

	shared *share // nil for none

	messages, dropped, skipped, resyncs, cuts atomic.Int64
}

// named are the settings of topics whose names begin with a prefix.
type named struct {
	prefix string
	Settings
}

// New returns a hub with the default settings of its topics. Logs are charged to the memory budget of the app; when clients need
// that memory, old messages are dropped.
func New(app *dunlin.App, settings Settings) *Hub {
	var random [4]byte
	_, _ = rand.Read(random[:]) // it never fails
	h := &Hub{epoch: hex.EncodeToString(random[:]), logs: map[string]*log{}}
	h.memory = ext.CacheBudget(app)(h.shrink)
	h.Set("", settings)
	return h
}

// Set replaces the settings of topics whose names begin with prefix, unless a longer prefix has others. Call it before the hub
// is used. It panics if a limit is negative.
func (h *Hub) Set(prefix string, s Settings) {
	if s.MaxMessages < 0 || s.MaxBytes < 0 || s.Slow > Cut {
		panic("topic: Settings: negative limit or unknown policy")
	}
	if s.MaxMessages == 0 {
		s.MaxMessages = defaultMessages
	}
	if s.MaxBytes == 0 {
		s.MaxBytes = defaultBytes
	}
	if s.Reconnect <= 0 {
		s.Reconnect = 5 * time.Second
	}
	h.settings = append(h.settings, named{prefix, s})
}

// settingsOf returns the settings of a topic.
func (h *Hub) settingsOf(name string) *Settings {
	best := &h.settings[0]
	for i := range h.settings {
		if n := &h.settings[i]; strings.HasPrefix(name, n.prefix) && len(n.prefix) >= len(best.prefix) {
			best = n
		}
	}
	return &best.Settings
}

// Stats are the counts of a hub.
type Stats struct {
	Topics      int
	Subscribers int   // of all topics
	Messages    int64 // published
	Dropped     int64 // from logs, since they were full or clients needed the memory
	Skipped     int64 // cases of a slow subscriber that continued with the oldest message
	Resyncs     int64 // cases of a subscriber that had to load its state anew
	Cuts        int64 // slow subscribers that were closed
}

// Stats returns the present counts, for [ext.AddStats] for example.
func (h *Hub) Stats() Stats {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := Stats{len(h.logs), 0, h.messages.Load(), h.dropped.Load(), h.skipped.Load(), h.resyncs.Load(), h.cuts.Load()}
	for _, l := range h.logs {
		s.Subscribers += l.subscribers()
	}
	return s
}

// Topic returns the topic with a name. Topics exist as long as they have subscribers or recent messages.
func (h *Hub) Topic(name string) Topic { return Topic{h, name} }

// A Topic is a sequence of messages to its subscribers. It is a name: all values with the same one are the same topic.
type Topic struct {
	hub  *Hub
	name string
}

// Name returns the name of the topic.
func (t Topic) Name() string { return t.name }

// Publish adds messages, which are UTF-8 text and are copied, to the log of the topic. Subscribers that have taken all earlier
// messages get them in one write. Publish does not wait for subscribers.
func (t Topic) Publish(messages ...[]byte) error { return t.hub.publish(t.name, change{}, messages) }

// Put adds the latest message of a key to a keyed topic, and removes the earlier one. Subscribers that have not taken the earlier
// one yet get only the latest. Beyond the limits of the log the keys that have not changed for the longest time are dropped.
func (t Topic) Put(key string, message []byte) error {
	return t.hub.put(t.name, change{key: key}, message)
}

// Delete removes a key of a keyed topic. Subscribers get the message, which should say so. New subscribers get nothing of the key.
func (t Topic) Delete(key string, message []byte) error {
	return t.hub.put(t.name, change{key: key, gone: true}, message)
}

// A change is the meaning of a message in a keyed topic. The zero value is that of other messages.
type change struct {
	key    string
	gone   bool // the key is deleted
	member bool // a connection holds the key from now on
}

func (h *Hub) put(name string, c change, message []byte) error {
	if c.key == "" {
		return errKeyed
	}
	return h.publish(name, c, [][]byte{message})
}

func (h *Hub) publish(name string, c change, messages [][]byte) error {
	if err := h.check(name, c, messages); err != nil {
		return err
	}
	if h.shared != nil && c.key == "" {
		if err := checkName(name); err != nil {
			return err
		}
		return h.shared.send(context.Background(), 0, name, messages)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	l, err := h.open(name)
	if err != nil {
		return err
	}
	return h.append(l, c, messages)
}

// append adds messages to a log, and to those of the wildcards that match its topic. h.mu is held.
func (h *Hub) append(l *log, c change, messages [][]byte) error {
	if err := l.append(l.name, c, messages); err != nil {
		return err
	}
	offset := h.visible.Load() + uint64(len(messages))
	wild := h.matching(l.name)
	var failed []*log
	for _, w := range wild {
		if w.append(l.name, change{}, messages) != nil {
			failed = append(failed, w)
		}
	}
	h.messages.Add(int64(len(messages)))
	h.visible.Store(offset)
	l.wake()
	for _, w := range wild {
		w.wake()
	}
	for _, w := range failed {
		w.lose(offset)
	}
	return nil
}

// check returns the error of messages that cannot be published.
func (h *Hub) check(name string, c change, messages [][]byte) error {
	s := h.settingsOf(name)
	if isWild(name) {
		return ErrName
	}
	if s.Keyed != (c.key != "") {
		return errKeyed
	}
	for _, m := range messages {
		switch {
		case len(m) == 0:
			return errEmpty
		case cost(m) > int64(s.MaxBytes):
			return errLong
		case !utf8.Valid(m):
			return errText
		}
	}
	return nil
}

// open returns the log of a topic. h.mu is held.
func (h *Hub) open(name string) (*log, error) {
	if l := h.logs[name]; l != nil {
		return l, nil
	}
	if err := checkName(name); err != nil {
		return nil, err
	}
	n := 0
	for _, l := range h.logs {
		if n++; n > looked {
			break
		}
		h.closeIdle(l)
	}
	if !h.reserve(logCost, nil) {
		return nil, ErrMemory
	}
	l := &log{hub: h, name: name, set: h.settingsOf(name), floor: h.gone}
	if isWild(name) {
		h.openWild(l)
	}
	l.last.Store(time.Now().Unix())
	h.logs[name] = l
	return l, nil
}

// reserve charges n bytes. If there is no memory, it drops some logs without subscribers, except own. h.mu is held.
func (h *Hub) reserve(n int64, own *log) bool {
	for !h.memory.Reserve(n) {
		seen, dropped := 0, false
		for _, l := range h.logs {
			if seen++; seen > inspected {
				break
			}
			if l != own && !l.used() {
				h.drop(l)
				dropped = true
			}
		}
		if !dropped {
			return false
		}
	}
	return true
}

// closeIdle drops a log that is not in use. h.mu is held.
func (h *Hub) closeIdle(l *log) {
	if l.used() || time.Since(time.Unix(l.last.Load(), 0)) < idleAfter {
		return
	}
	h.drop(l)
}

// drop drops a log without subscribers. h.mu is held.
func (h *Hub) drop(l *log) {
	l.shrink(1 << 62)
	if isWild(l.name) {
		h.wild-- // a later log of the wildcard has none of the messages before, anyway
	} else {
		h.gone = max(h.gone, l.floor)
	}
	h.memory.Release(logCost)
	delete(h.logs, l.name)
}

// shrink drops messages of n bytes, or all, since clients need the memory.
func (h *Hub) shrink(n int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.logs {
		if n <= 0 {
			return
		}
		n -= l.shrink(n)
	}
}

func checkName(name string) error {
	if name == "" || len(name) > maxName || name == resyncName || !utf8.ValidString(name) {
		return ErrName
	}
	for i := range len(name) {
		if c := name[i]; c <= ' ' || c == 0x7f {
			return ErrName
		}
	}
	return nil
}

// appendID appends the ID of a position: the epoch of the hub, "-", and the offset; or the sender of a shared message and its number.
func (h *Hub) appendID(b []byte, offset uint64) []byte {
	if h.shared != nil {
		if b, ok := h.shared.appendID(b, offset); ok {
			return b
		}
	}
	return strconv.AppendUint(append(append(b, h.epoch...), '-'), offset, 10)
}

// offsetOf returns the offset of an ID of this hub.
func (h *Hub) offsetOf(id string) (offset uint64, ok bool) {
	digits, ok := strings.CutPrefix(id, h.epoch+"-")
	if !ok {
		if h.shared != nil {
			return h.shared.offsetOf(id)
		}
		return 0, false
	}
	offset, err := strconv.ParseUint(digits, 10, 64)
	return offset, err == nil && offset <= h.visible.Load()
}

// String returns the name of the policy.
func (p Policy) String() string {
	return [...]string{"resync", "skip", "cut"}[min(p, Cut)]
}

// checkNames returns the error of subscriptions that cannot be.
func (h *Hub) checkNames(names []string) error {
	switch {
	case len(names) == 0:
		return errNone
	case len(names) > maxSubscriptions:
		return ErrTooMany
	}
	for _, name := range names {
		if err := checkName(name); err != nil || isWild(name) && !h.settingsOf(name).Wildcards {
			return fmt.Errorf("%w: %.40q", ErrName, name)
		}
	}
	return nil
}
