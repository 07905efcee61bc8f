package topic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/ext"
	"github.com/dunlinhttp/dunlin/internal/peers"
)

// A Policy decides about a subscriber whose next message is no longer in the log of the topic.
type Policy uint8

const (
	// Resync tells the subscriber to reload its state, and continues with the next message.
	Resync Policy = iota
	// Skip continues with the oldest message in the log.
	Skip
	// Cut closes the connection, a WebSocket with the code 1008.
	Cut
)

// Settings are the settings of topics. The zero value has the defaults.
type Settings struct {
	// MaxMessages and MaxBytes limit the log of a topic. The oldest messages are dropped first. A message counts about twice its
	// length, because of its encodings. Defaults: 256, and 256 KiB.
	MaxMessages int
	MaxBytes    int

	// Slow is the policy for slow subscribers. Default: Resync.
	Slow Policy

	// Keyed: the log has the latest message of each key, see Topic.Put. New subscribers first get the messages of all keys.
	Keyed bool

	// Lease is the time after which the members of a process that has ended without notice leave, plus up to a third of it. Only the value
	// given to New counts, for all topics of the hub. Default: 30 s.
	Lease time.Duration

	// Reconnect is the time within which clients should reconnect after a drain of the server. Event streams pass it to the clients.
	// Only the value given to New counts, for all topics of the hub. Default: 5 s.
	Reconnect time.Duration

	// Bare: messages to WebSockets are the published data alone. By default a message begins with a line of its ID, a space, and the
	// name of the topic. A subscriber of bare topics cannot resume, and gets no announcement but that of missed messages.
	Bare bool

	// Wildcards: clients may subscribe to all topics whose names begin with a prefix, such as "orders/*", or to all topics with "*".
	// From its first subscription on, a wildcard has a log of its messages, with these settings. The log has no keys: messages of
	// keyed topics are ordinary messages in it. The function that allows subscriptions gets the name with its "*".
	Wildcards bool
}

const (
	maxName = 255
	// maxSubscriptions is the maximum number of topics of one subscriber.
	maxSubscriptions = 64
	// idleAfter is the time after the last message or subscription after which the log of a topic without subscribers may be
	// dropped.
	idleAfter = 5 * time.Minute
	// looked is the number of logs that the opening of a new log checks, to drop the idle ones.
	looked = 4
	// inspected is the number of logs that reserve checks when there is no memory, to drop those without subscribers.
	inspected = 32
)

var (
	// ErrMemory reports that the app's budget has no memory for a message or a topic.
	ErrMemory = errors.New("topic: no memory")

	// ErrName reports an invalid name of a topic: it is empty, longer than 255 bytes, not UTF-8, has a space or a control character,
	// or is "resync". It also reports a wildcard where none is allowed.
	ErrName = errors.New("topic: invalid name")

	// ErrTooMany reports more than 64 subscriptions, or more than 64 memberships, of one connection.
	ErrTooMany = errors.New("topic: too many subscriptions")

	// ErrFull reports that the messages of members fill the log of a keyed topic.
	ErrFull = errors.New("topic: the log is full of members")

	errNone   = errors.New("topic: subscribe: no topic is named")
	errKeyed  = errors.New("topic: publish: keyed topics need Put, Delete or Join with a key, and others Publish")
	errHub    = errors.New("topic: subscribe: the connection has subscriptions of another hub")
	errEmpty  = errors.New("topic: publish: empty message")
	errLong   = errors.New("topic: publish: message is longer than the log of its topic")
	errShared = errors.New("topic: share: the hub is shared already")
	errText   = errors.New("topic: publish: message or key is not UTF-8")
)

// A Hub has the topics of an app. Its methods are safe for concurrent use, except Set.
type Hub struct {
	memory   *ext.CacheMemory
	ids      *peers.IDs
	settings []named

	visible atomic.Uint64 // offset of the newest message; all messages up to it are in their logs

	// mu is acquired after the lock of a feed, and before that of a log.
	mu        sync.Mutex
	logs      map[string]*log
	gone      uint64 // highest offset in the logs that were dropped
	resumable uint64 // clients cannot resume from earlier offsets
	wild      int    // number of logs of wildcards

	shared *share // nil for none

	messages, dropped, skipped, resyncs, cuts atomic.Int64
}

// named are the settings of topics whose names begin with a prefix.
type named struct {
	prefix string
	Settings
}

// New returns a hub. settings are the settings of its topics; Set can replace them for a prefix. Logs are charged to the memory
// budget of the app. When clients need that memory, the hub drops old messages.
func New(app *dunlin.App, settings Settings) *Hub {
	h := &Hub{ids: peers.NewIDs(false), logs: map[string]*log{}}
	h.memory = ext.CacheBudget(app)(h.shrink)
	h.Set("", settings)
	return h
}

// Set replaces the settings of topics whose names begin with prefix, unless Set has a longer prefix of the name. Call it before the
// hub is used. It panics if a limit is negative.
func (h *Hub) Set(prefix string, s Settings) {
	if s.MaxMessages < 0 || s.MaxBytes < 0 || s.Slow > Cut {
		panic("topic: Settings: negative limit or unknown policy")
	}
	s.MaxMessages = cmp.Or(s.MaxMessages, 256)
	s.MaxBytes = cmp.Or(s.MaxBytes, 256<<10)
	s.Reconnect = cmp.Or(max(s.Reconnect, 0), 5*time.Second)
	s.Lease = cmp.Or(max(s.Lease, 0), 30*time.Second)
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
	Dropped     int64 // messages dropped from logs, because a log was full or clients needed the memory
	Skipped     int64 // times a slow subscriber continued with the oldest message
	Resyncs     int64 // times a subscriber had to reload its state
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

// Topic returns the topic with the name. A topic exists while it has subscribers or recent messages.
func (h *Hub) Topic(name string) Topic { return Topic{h, name} }

// A Topic is a sequence of messages to its subscribers. All values with the same name are the same topic.
type Topic struct {
	hub  *Hub
	name string
}

// Name returns the name of the topic.
func (t Topic) Name() string { return t.name }

// Publish adds copies of messages, which must be UTF-8 text, to the log of the topic. A subscriber that has all earlier messages
// gets them in one write. Publish does not wait for subscribers.
func (t Topic) Publish(messages ...[]byte) error {
	h := t.hub
	if err := h.check(t.name, "", messages); err != nil {
		return err
	}
	if h.shared != nil {
		return h.shared.send(context.Background(), peers.Packet{Name: t.name, Messages: messages})
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	l, err := h.open(t.name)
	if err != nil {
		return err
	}
	return h.append(l, change{}, messages)
}

// Put sets the message of a key of a keyed topic. It replaces the earlier message: a subscriber that has not received that one gets
// only the new one. Beyond the limits of the log the keys with the oldest messages are dropped.
func (t Topic) Put(key string, message []byte) error {
	return t.hub.put(change{Topic: t.name, Key: key, Data: message})
}

// Delete removes a key of a keyed topic. Subscribers get the message, which should tell them of the deletion. New subscribers do
// not get it.
func (t Topic) Delete(key string, message []byte) error {
	return t.hub.put(change{Topic: t.name, Key: key, Data: message, Gone: true})
}

// put implements Put and Delete.
func (h *Hub) put(c change) error {
	if c.Key == "" {
		return errKeyed
	}
	if err := h.check(c.Topic, c.Key, [][]byte{c.Data}); err != nil {
		return err
	}
	h.mu.Lock()
	l, err := h.open(c.Topic)
	switch {
	case err != nil:
	case h.shared == nil:
		_, err = h.apply(l, c)
	case !l.fits(c, cost(c.Data)+int64(len(c.Key))):
		err = ErrFull
	}
	if h.shared != nil {
		c.At = h.shared.Time()
	}
	h.mu.Unlock()
	if err == nil && h.shared != nil {
		err = h.shared.send(context.Background(), peers.Packet{Flags: peers.Changes, State: peers.State{Changes: []change{c}}})
	}
	return err
}

// append adds messages to a log, and to the logs of the wildcards that match its topic. h.mu is held.
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

// check returns an error if the messages cannot be published.
func (h *Hub) check(name, key string, messages [][]byte) error {
	s := h.settingsOf(name)
	switch {
	case checkName(name) != nil, isWild(name):
		return ErrName
	case s.Keyed != (key != ""):
		return errKeyed
	case !utf8.ValidString(key):
		return errText
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

// closeIdle drops a log if it is idle. h.mu is held.
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
		h.wild-- // a new log of the wildcard begins after all present messages
	} else {
		h.gone = max(h.gone, l.floor)
	}
	h.memory.Release(logCost)
	delete(h.logs, l.name)
}

// shrink drops messages of n bytes in all, or every message, for clients that need the memory.
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

// String returns the name of the policy.
func (p Policy) String() string {
	return [...]string{"resync", "skip", "cut"}[min(p, Cut)]
}

// checkNames returns an error if a client cannot subscribe to the names.
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
