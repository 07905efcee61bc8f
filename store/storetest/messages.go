package storetest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/store"
)

func testMessages(t *testing.T, b *bench) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	got := make(chan string, 100)
	for range 2 {
		if err := b.Subscribe(ctx, b.key("topic"), func(m store.Message) { got <- string(m.Body) }); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Publish(ctx, b.key("other"), []byte("not this")); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		want := fmt.Sprint("message ", i)
		body := []byte(want)
		if err := b.Publish(ctx, b.key("topic"), body); err != nil {
			t.Fatal(err)
		}
		clear(body)
		for range 2 {
			select {
			case m := <-got:
				if m != want {
					t.Fatalf("got message %q, want %q", m, want)
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("got no message %q", want)
			}
		}
	}
}

// Messages of one publisher arrive in order, without waits between them.
func testMessageOrder(t *testing.T, b *bench) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	const n = 50 // the length of a subscriber's queue
	got := [3]chan string{}
	for i := range got {
		got[i] = make(chan string, n)
		if err := b.Subscribe(ctx, b.key("topic"), func(m store.Message) { got[i] <- string(m.Body) }); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		if err := b.Publish(ctx, b.key("topic"), []byte(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		for _, from := range got {
			select {
			case m := <-from:
				if m != fmt.Sprint(i) {
					t.Fatalf("got message %s, want %d", m, i)
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("got no message %d", i)
			}
		}
	}
}

func testSlowReceiver(t *testing.T, b *bench) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	const n = 2000
	release, finished := make(chan struct{}), make(chan struct{})
	var received, lost atomic.Uint64
	err := b.Subscribe(ctx, b.key("topic"), func(m store.Message) {
		<-release
		lost.Add(m.Lost)
		received.Add(1)
		if string(m.Body) == "last" {
			close(finished)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		if err := b.Publish(ctx, b.key("topic"), []byte("message")); err != nil {
			t.Fatal(err)
		}
	}
	close(release)
	// When the queue has room again, the next message arrives with the number of dropped messages.
	eventually(t, "the line of messages is worked off", func() bool { return received.Load() > 0 })
	sent := uint64(n)
	publishLast := time.NewTicker(5 * time.Millisecond)
	defer publishLast.Stop()
	body, deadline := "more", time.After(20*time.Second)
	for done := false; !done; {
		select {
		case <-finished:
			done = true
		case <-publishLast.C:
			if body == "last" {
				continue
			}
			before := received.Load()
			if before+lost.Load() == sent || before > 2*n {
				body = "last"
			}
			if err := b.Publish(ctx, b.key("topic"), []byte(body)); err != nil {
				t.Fatal(err)
			}
			sent++
		case <-deadline:
			t.Fatalf("got %[2]d received and %[3]d lost messages, sent %[1]d", sent, received.Load(), lost.Load())
		}
	}
	if all := received.Load() + lost.Load(); all != sent {
		t.Errorf("got %[2]d received and %[3]d lost messages, sent %[1]d", sent, received.Load(), lost.Load())
	}
}

func testUnsubscribe(t *testing.T, b *bench) {
	ctx2, cancel := context.WithCancel(ctx)
	defer cancel()
	var late atomic.Bool
	var afterwards atomic.Int64
	got := make(chan struct{}, 100)
	if err := b.Subscribe(ctx2, b.key("topic"), func(store.Message) {
		if late.Load() {
			afterwards.Add(1)
		}
		got <- struct{}{}
	}); err != nil {
		t.Fatal(err)
	}
	publish := func(received <-chan struct{}) {
		t.Helper()
		if err := b.Publish(ctx, b.key("topic"), nil); err != nil {
			t.Fatal(err)
		}
		select {
		case <-received:
		case <-time.After(10 * time.Second):
			t.Fatal("a message did not arrive")
		}
	}
	publish(got)
	cancel()
	other := make(chan struct{}, 100)
	ctx3, cancel3 := context.WithCancel(ctx)
	defer cancel3()
	if err := b.Subscribe(ctx3, b.key("topic"), func(store.Message) { other <- struct{}{} }); err != nil {
		t.Fatal(err)
	}
	late.Store(true)
	for range 20 {
		publish(other)
	}
	if n := afterwards.Load(); n > 0 {
		t.Errorf("got %d messages after the end of the subscription's context", n)
	}
}

func testComingAndGoing(t *testing.T, b *bench) {
	// Send fewer messages at once than the queue of a slow subscriber can hold.
	const listeners, rounds, times = 8, 5, 20
	for i := range times {
		var wg sync.WaitGroup
		for n := range listeners {
			wg.Go(func() {
				for j := range rounds {
					listenOnce(t, b, fmt.Sprint(n, " ", i, " ", j))
				}
			})
		}
		wg.Wait()
		if t.Failed() {
			return
		}
	}
}

// listenOnce subscribes to a topic, publishes a message and returns when that message has arrived.
func listenOnce(t *testing.T, b *bench, own string) {
	listening, leave := context.WithCancel(ctx)
	defer leave()
	got := make(chan string, 1000)
	if err := b.Subscribe(listening, b.key("topic"), func(m store.Message) { got <- string(m.Body) }); err != nil {
		t.Error(err)
		return
	}
	if err := b.Publish(ctx, b.key("topic"), []byte(own)); err != nil {
		t.Error(err)
		return
	}
	deadline := time.After(10 * time.Second)
	for {
		select {
		case m := <-got:
			if m == own {
				return
			}
		case <-deadline:
			t.Errorf("subscriber did not receive the message %s", own)
			return
		}
	}
}
