package backlog

import (
	"context"
	"math/rand/v2"
	"testing"
)

// Random receivers get all messages in order, except those counted as lost. The log drops messages that all of them have received.
func TestReceivers(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	type reader struct {
		*Receiver[int]
		from, got, lost int
	}
	var l Log[int]
	var readers []*reader
	sent := 0
	receive := func(r *reader) {
		m, lost, ok := r.Next(t.Context())
		r.lost += int(lost)
		if want := r.from + r.got + r.lost; !ok || m != want {
			t.Fatalf("got %d, %v, want %d", m, ok, want)
		}
		r.got++
	}
	left := func(r *reader) int { return sent - r.from - r.got - r.lost }
	for range 20_000 {
		switch random.IntN(12) {
		case 0:
			if len(readers) < 8 {
				readers = append(readers, &reader{Receiver: l.Join(), from: sent})
			}
		case 1:
			if n := len(readers); n > 0 && random.IntN(20) == 0 {
				if last := readers[n-1].Leave(); last != (n == 1) {
					t.Fatalf("last of %d receivers: got %v", n, last)
				}
				readers = readers[:n-1]
			}
		case 2, 3, 4, 5, 6, 7:
			if len(readers) > 0 {
				l.Add(sent)
				sent++
			}
		default:
			if n := len(readers); n > 0 {
				if r := readers[random.IntN(n)]; left(r) > 0 {
					receive(r)
				}
			}
		}
	}
	for _, r := range readers {
		for left(r) > 0 {
			receive(r)
		}
	}
	for i, s := range l.slots {
		if s != (slot[int]{}) {
			t.Errorf("slot %d: got %+v, want an empty one", i, s)
		}
	}
}

func TestNextWaits(t *testing.T) {
	var l Log[string]
	r := l.Join()
	got := make(chan string)
	go func() {
		m, _, _ := r.Next(t.Context())
		got <- m
	}()
	l.Add("hello")
	if m := <-got; m != "hello" {
		t.Errorf("got %q", m)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go cancel()
	if _, _, ok := r.Next(ctx); ok {
		t.Error("got a message after the end of the context")
	}
}
