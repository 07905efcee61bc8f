package h2_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// FuzzFrames sends valid and invalid frames in the order of a script. Nothing panics, every answer is on the stream of its
// request, and valid requests are answered: on this connection while it lasts, and on any other.
func FuzzFrames(f *testing.F) {
	for seed := range uint64(16) {
		r := rand.New(rand.NewPCG(seed, 9))
		script := make([]byte, 20+r.IntN(200))
		for i := range script {
			script[i] = byte(r.Uint32())
			if seed%2 == 0 { // mostly right
				script[i] %= 11
			}
		}
		f.Add(script)
	}
	var servers []*server
	panics := new(panicLog)
	for _, v := range variants {
		if v.engine == dunlin.EngineStd && !v.secure {
			continue // net/http behaves as over TLS
		}
		st := newStage()
		servers = append(servers, serve(f, v, dunlin.Config{Logger: slog.New(panics)}, st.register))
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		for _, s := range servers {
			p, other := s.dial(t), s.dial(t)
			(&fuzzer{p: p, clean: map[uint32]string{}, next: 1}).run(t, script[:min(len(script), 1000)])
			other.send(get(1, "/fields?other"))
			other.want(1, "200", "GET test.example /fields other")
			p.close()
			other.close()
			wantNothingHeld(t, s)
			panics.check(t)
		}
	})
}

// A fuzzer sends the frames of a script.
type fuzzer struct {
	p     *peer
	in    []byte
	next  uint32            // stream
	clean map[uint32]string // requests on undisturbed streams, and their answers
	wrong bool              // frames have been sent that end the connection, or may
}

func (z *fuzzer) byte() byte {
	if len(z.in) == 0 {
		return 0
	}
	b := z.in[0]
	z.in = z.in[1:]
	return b
}

// some returns a present or past stream. Its outcome is not checked from then on.
func (z *fuzzer) some() uint32 {
	b := z.byte()
	id := z.next - 2 - 2*min(uint32(b%8), (z.next-3)/2)
	if b >= 240 {
		id, z.wrong = z.next, true
	}
	delete(z.clean, id)
	return id
}

func (z *fuzzer) run(t *testing.T, script []byte) {
	z.p.send(z.frames()) // a request
	z.in = script
	for len(z.in) > 0 && z.p.lasts() {
		z.p.send(z.frames())
	}
	z.p.send(frame(tSettings, 0, 0, setting(setWindow, 1<<20)), frame(tPing, 0, 0, "the end."))
	ended := false
	answered := z.p.until(func() bool {
		if n := len(z.p.away); n > 0 && z.p.away[n-1].code != noError {
			ended = true
			return true
		}
		for id := range z.clean {
			if !z.p.streams[id].over() {
				return false
			}
		}
		return true
	})
	z.p.mu.Lock()
	defer z.p.mu.Unlock()
	if !answered && (z.p.late || !z.wrong) || ended && !z.wrong {
		t.Errorf("not all requests were answered: ended by %q, GOAWAY %v", z.p.goneBy, z.p.away)
	}
	for id, a := range z.p.streams {
		want, clean := z.clean[id]
		switch got := a.body.String(); {
		case clean && a.over() && (a.String() != "200" || got != want):
			t.Errorf("stream %d: got %v, %q, want %q", id, a, got, want)
		case strings.HasPrefix(a.status, "2") && !strings.HasSuffix(got, fmt.Sprint(" ", id)) && !strings.HasPrefix(got, fmt.Sprint(id, " ")) && !strings.HasPrefix(fmt.Sprint(id, " "), got):
			t.Errorf("stream %d has the answer %q", id, got)
		}
	}
}

// open returns the next stream, with the answer that it should get.
func (z *fuzzer) open(want string) uint32 {
	id := z.next
	z.next += 2
	z.clean[id] = fmt.Sprintf(want, id)
	return id
}

// frames returns the next frames of the script.
func (z *fuzzer) frames() string {
	switch z.byte() % 16 {
	default:
		id := z.open("GET test.example /fields %d")
		return get(id, fmt.Sprint("/fields?", id))
	case 3:
		id := z.open("%d echo")
		return post(id, "/echo") + data(id, fmt.Sprint(id, " echo"), endStream)
	case 4:
		id := z.open("%d echo")
		whole := fmt.Sprint(id, " echo")
		return post(id, "/std/echo") + data(id, whole[:1], 0) + frame(tPing, 0, 0, "between!") + data(id, whole[1:], 0) + headers(id, endStream, block("a", "b"))
	case 5:
		id := z.open("GET test.example /fields %d")
		fields := request("GET", fmt.Sprint("/fields?", id))
		cut := int(z.byte()) % len(fields)
		return frame(tHeaders, endStream, id, fields[:cut]) + frame(tContinuation, endHeaders, id, fields[cut:])
	case 6:
		id := z.open("")
		delete(z.clean, id)
		return post(id, "/echo") + data(id, fmt.Sprint(id, " "), 0)
	case 7:
		id := z.some()
		return frame(tReset, 0, id, u32(uint32(z.byte())))
	case 8:
		id := z.some()
		return frame(tWindow, 0, id, u32(uint32(z.byte())))
	case 9:
		id, on := z.some(), uint32(z.byte())
		z.wrong = z.wrong || id == on
		return frame(tPriority, 0, id, u32(on)+"x") + frame(tPriorityUpdate, 0, 0, u32(z.some())+"u=1")
	case 10:
		settings := []string{setting(setWindow, uint32(z.byte())<<8), setting(setTable, uint32(z.byte()))}
		if z.p.netHTTP() {
			settings = settings[:1] // Go 1.26 moves its encoder's table while a head is being written
		}
		return frame(tSettings, 0, 0, settings...)
	case 11:
		id := z.some()
		z.wrong = true // it may be over
		return data(id, strings.Repeat("x", int(z.byte())), z.byte()&endStream)
	case 12:
		z.wrong = true
		return headers(z.some(), endStream, block("t", "u"))
	case 13:
		z.wrong = true
		return get(z.some(), "/fields?again")
	case 14:
		z.wrong = true
		kind, flags, id, n := z.byte()%12, z.byte(), uint32(z.byte()), int(z.byte()%32)
		return frame(kind, flags, id, string(z.in[:min(len(z.in), n)]))
	}
}

// A panicLog records the log records about panics.
type panicLog struct {
	mu  sync.Mutex
	got bytes.Buffer
}

func (l *panicLog) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
	if strings.Contains(text, "panic") {
		l.mu.Lock()
		defer l.mu.Unlock()
		fmt.Fprintln(&l.got, text)
	}
	return nil
}

func (l *panicLog) Enabled(context.Context, slog.Level) bool { return true }
func (l *panicLog) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *panicLog) WithGroup(string) slog.Handler            { return l }

func (l *panicLog) check(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.got.Len() > 0 {
		t.Fatalf("got %s", l.got.String())
	}
}
