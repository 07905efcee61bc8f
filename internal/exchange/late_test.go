package exchange_test

import (
	"context"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// Contexts derived from the context of a late action end with DeadlineExceeded, also after the end of its request.
func TestTimeoutContextCause(t *testing.T) {
	parent, end := context.WithCancel(context.WithValue(context.Background(), t, "value"))
	late := exchange.NewTimeoutContext(parent, time.Unix(1, 0))
	late.End(context.DeadlineExceeded)
	end()
	child, cancel := context.WithCancel(late)
	defer cancel()
	<-child.Done()
	if child.Err() != context.DeadlineExceeded || context.Cause(child) != context.DeadlineExceeded {
		t.Errorf("%v, because of %v", child.Err(), context.Cause(child))
	}
	if until, ok := late.Deadline(); !ok || until != time.Unix(1, 0) || late.Value(t) != "value" {
		t.Errorf("deadline %v %v, value %v", until, ok, late.Value(t))
	}
}

// A parent that ends first ends the context.
func TestTimeoutContextEndsWithParent(t *testing.T) {
	until := time.Now().Add(time.Hour)
	parent, end := context.WithDeadline(context.Background(), until)
	c := exchange.NewTimeoutContext(parent, until.Add(time.Hour))
	if got, ok := c.Deadline(); !ok || got != until {
		t.Errorf("deadline %v %v", got, ok)
	}
	end()
	<-c.Done()
	if c.Err() != context.Canceled {
		t.Error(c.Err())
	}
}

// A parent may end while the context is made: the race detector observes it.
func TestTimeoutContextParentEndsConcurrently(t *testing.T) {
	for range 100 {
		parent, end := context.WithCancel(context.Background())
		go end()
		c := exchange.NewTimeoutContext(parent, time.Unix(1, 0))
		<-c.Done()
	}
}
