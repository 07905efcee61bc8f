//go:build linux

package looph2

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// A context that an action creates at the timeout, but before the stream is marked late, is cancelled too.
func TestContextCreatedAtTimeout(t *testing.T) {
	own := &stream{s: new(session), flow: &still, resting: &nothing}
	x := &Wire{own: own}
	x.State = &exchange.State{Route: &exchange.Route{Timeout: time.Second}}
	if x.isLate() {
		t.Fatal("it is late")
	}
	own.action = late // here the timer fires, and finds no context
	x.MakeContext(context.Background(), new(net.UnixAddr), true, time.Second)
	x.noteContext()
	if err := x.Context().Err(); err != context.DeadlineExceeded {
		t.Errorf("the context: %v", err)
	}
}
