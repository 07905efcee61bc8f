package h2_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http2"
)

// patience is the time limit of every wait that a failing test would otherwise never end.
const patience = 30 * time.Second

// until waits until ready, which is called with the lock held, and reports false if that
// takes too long or the connection ends first.
func (p *peer) until(ready func() bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.late = false
	timer := time.AfterFunc(patience, func() {
		p.mu.Lock()
		p.late = true
		p.changed.Broadcast()
		p.mu.Unlock()
	})
	defer timer.Stop()
	for !ready() {
		if p.late || p.goneBy != "" {
			return false
		}
		p.changed.Wait()
	}
	return true
}

// must fails the test if ready does not become true.
func (p *peer) must(what string, ready func() bool) {
	p.t.Helper()
	if !p.until(ready) {
		p.t.Fatalf("%s: did not arrive; %s", what, p.state())
	}
}

// state describes the connection.
func (p *peer) state() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	ids := slices.Sorted(maps.Keys(p.streams))
	var b strings.Builder
	fmt.Fprintf(&b, "ended by %q, GOAWAY %v, settings %v, windows %d;", p.goneBy, p.away, p.server, p.window)
	for _, id := range ids[:min(len(ids), 20)] {
		a := p.streams[id]
		fmt.Fprintf(&b, " %d: %v, %d bytes, window %d;", id, a, a.body.Len(), a.window)
	}
	return b.String()
}

// answer waits for the end of a stream.
func (p *peer) answer(id uint32) *answer {
	p.t.Helper()
	var a *answer
	p.must(fmt.Sprintf("the answer on stream %d", id), func() bool { a = p.streams[id]; return a.over() })
	return a
}

// got returns the number of received bytes of a body.
func (p *peer) got(id uint32) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a := p.streams[id]; a != nil {
		return a.body.Len()
	}
	return 0
}

// forget drops a complete answer, to limit the memory of the test.
func (p *peer) forget(id uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.streams, id)
	delete(p.room, id)
}

// beQuiet stops granting windows.
func (p *peer) beQuiet() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.quiet = true
}

// beDeaf stops reading, or continues it.
func (p *peer) beDeaf(deaf bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deaf = deaf
	p.changed.Broadcast()
}

// want waits for a complete answer and compares it.
func (p *peer) want(id uint32, status, body string) *answer {
	p.t.Helper()
	a := p.answer(id)
	if a.String() != status || a.body.String() != body {
		p.t.Errorf("stream %d: got %v with %d bytes %.60q, want %s with %d bytes %.60q", id, a, a.body.Len(), a.body.String(), status, len(body), body)
	}
	return a
}

// ping waits until the server has read everything sent so far.
func (p *peer) ping(word string) {
	p.t.Helper()
	p.send(frame(tPing, 0, 0, word))
	p.must("the reply to a PING", func() bool { return slices.Contains(p.pongs, word) })
}

// body sends a body, as the server's windows allow.
func (p *peer) body(id uint32, body string, flags byte) {
	p.t.Helper()
	for {
		n := 0
		p.must(fmt.Sprintf("a window for the body of stream %d", id), func() bool {
			n = int(min(int64(len(body)), p.room[0], p.room[id], 16<<10))
			return n > 0 || len(body) == 0
		})
		if n == len(body) {
			p.send(frame(tData, flags, id, body))
			return
		}
		p.send(frame(tData, 0, id, body[:n]))
		body = body[n:]
	}
}

// netHTTP reports whether it is net/http that reads the frames, by its SETTINGS.
func (p *peer) netHTTP() bool {
	p.t.Helper()
	p.must("SETTINGS", func() bool { return p.greeted })
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.server[http2.SettingMaxFrameSize] == 1<<20
}

// An outcome is the result of a violation.
type outcome struct {
	scope string // stream, connection, or ignored
	what  string // of a connection the code of its GOAWAY, or closed; else see answer.String
}

func (o outcome) String() string { return strings.TrimSpace(o.scope + " " + o.what) }

// outcome waits for the end of a stream or of the connection. If word is not empty, the reply to the PING with this word means
// that neither will end. before reports whether the stream had already ended.
func (p *peer) outcome(stream uint32, before bool, word string) outcome {
	hit := func() bool {
		a := p.streams[stream]
		return stream != 0 && a != nil && (a.reset || a.over() && !before)
	}
	p.until(func() bool { return len(p.away) > 0 || hit() || word != "" && slices.Contains(p.pongs, word) })
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case len(p.away) > 0:
		return outcome{"connection", p.away[len(p.away)-1].code.String()}
	case hit() && before:
		return outcome{"stream", p.streams[stream].code.String()}
	case hit():
		return outcome{"stream", p.streams[stream].String()}
	case p.goneBy != "":
		return outcome{"connection", "closed"}
	case p.late:
		return outcome{"nothing happened", ""}
	}
	return outcome{"ignored", ""}
}
