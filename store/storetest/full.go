package storetest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/dunlinhttp/dunlin/store"
)

// RunFull tests the size limit of the store that open returns. The limit must be a few MiB, and the store must not be used
// by other tests. If there is no room for a value, Set must fail with store.ErrFull and change nothing. Existing values
// must remain, and released room must be usable again.
func RunFull(t *testing.T, open func(*testing.T) store.Store) {
	s := open(t)
	t.Cleanup(func() { _ = s.Close() })
	b := &bench{Store: s, prefix: "full-"}
	kept := b.mustSet(t, b.key("kept"), "v", store.VersionAbsent, long)
	if _, err := b.Add(ctx, b.key("kept"), 7, long); err != nil {
		t.Fatal(err)
	}
	const size = 64 << 10
	n := 0
	for ; ; n++ {
		_, err := b.Set(ctx, b.key(fmt.Sprint(n)), make([]byte, size), store.VersionAbsent, long)
		if errors.Is(err, store.ErrFull) && !errors.Is(err, store.ErrUnavailable) {
			break
		}
		if err != nil || n > 1000 {
			t.Fatalf("Set of value %d, of 64 KiB: %v, want %v in the end", n, err, store.ErrFull)
		}
	}
	_, err := b.Get(ctx, b.key(fmt.Sprint(n)))
	mustFail(t, "Get of the refused value", err, store.ErrNotFound)
	_, err = b.Set(ctx, b.key("kept"), make([]byte, size), kept, 9*long)
	mustFail(t, "Set of more than there is room for", err, store.ErrFull)
	if item := b.mustBe(t, b.key("kept"), "v"); item.Version != kept || item.TTL > long {
		t.Errorf("after the failure: got version %d and TTL %v, want %d and at most %v", item.Version, item.TTL, kept, long)
	}
	for i := range n { // no live value was evicted
		if item, err := b.Get(ctx, b.key(fmt.Sprint(i))); err != nil || len(item.Value) != size {
			t.Fatalf("value %d: got %d bytes, error %v", i, len(item.Value), err)
		}
	}
	for i := range min(n, 4) {
		if err := b.Expire(ctx, b.key(fmt.Sprint(i)), 0); err != nil {
			t.Fatalf("Expire in a full store: got error %v", err)
		}
	}
	eventually(t, "released room can be used again", func() bool {
		_, err := b.Set(ctx, b.key("new"), make([]byte, size), store.VersionAny, long)
		return err == nil
	})
	if n, err := b.Add(ctx, b.key("kept"), 1, long); err != nil || n != 8 {
		t.Errorf("number: got %d, error %v, want 8", n, err)
	}
}
