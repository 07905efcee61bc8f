package logqueue_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunlinhttp/dunlin/internal/logqueue"
)

// A slowHandler accepts a record for each value sent to open.
type slowHandler struct {
	slog.Handler
	open chan struct{}
}

func (h *slowHandler) Handle(ctx context.Context, r slog.Record) error {
	<-h.open
	switch r.Message {
	case "panic":
		panic("a handler's")
	case "exit":
		runtime.Goexit() // like t.FailNow
	}
	return h.Handler.Handle(ctx, r)
}

// newSlow returns a queue with a blocked handler, and the handler's output.
func newSlow() (*logqueue.Queue, *slowHandler, *bytes.Buffer) {
	var said bytes.Buffer
	plain := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	h := &slowHandler{slog.NewTextHandler(&said, &slog.HandlerOptions{ReplaceAttr: plain}), make(chan struct{})}
	return logqueue.New(h), h, &said
}

func TestOrderAndLevels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, h, said := newSlow()
		close(h.open)
		log := q.Logger()
		for i := range 3 {
			log.Info("record", "i", i)
		}
		log.Debug("not accepted")
		q.Flush(t.Context())
		want := "level=INFO msg=record i=0\nlevel=INFO msg=record i=1\nlevel=INFO msg=record i=2\n"
		if said.String() != want || q.Dropped() != 0 {
			t.Errorf("got:\n%s\nwant:\n%s(%d dropped)", said, want, q.Dropped())
		}
	})
}

// The first record of a program is passed on after a short delay, and later records immediately. A record for which a caller waits
// is also passed on immediately.
func TestFirstRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, h, _ := newSlow()
		given := func() bool {
			synctest.Wait()
			select {
			case h.open <- struct{}{}:
				return true
			default:
				return false
			}
		}
		q.Logger().Info("first")
		if given() {
			t.Error("the first record was passed on immediately")
		}
		time.Sleep(10 * time.Millisecond)
		if !given() {
			t.Error("the first record was not passed on")
		}
		q.Logger().Info("second")
		if !given() {
			t.Error("the second record was not passed on immediately")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		q, h, _ := newSlow()
		close(h.open)
		before := time.Now()
		if q.Patient().Info("first"); time.Since(before) > 0 {
			t.Errorf("record passed on after %v", time.Since(before))
		}
	})
	for name, wait := range map[string]func(q *logqueue.Queue){
		"logger":      func(q *logqueue.Queue) { q.Patient().Info("second") },
		"the program": func(q *logqueue.Queue) { q.Flush(context.Background()) },
	} {
		synctest.Test(t, func(t *testing.T) {
			q, h, said := newSlow()
			close(h.open)
			before := time.Now()
			q.Logger().Info("first")
			if wait(q); time.Since(before) > 0 {
				t.Errorf("%s: waited for %v", name, time.Since(before))
			}
			time.Sleep(10 * time.Millisecond) // the record is passed on only once
			synctest.Wait()
			if n := strings.Count(said.String(), "first"); n != 1 {
				t.Errorf("%s: got the record %d times", name, n)
			}
		})
	}
}

// A handler that blocks does not block callers. Records without room are counted, and the count is logged when there is room
// again.
func TestHandlerBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, h, said := newSlow()
		log := q.Logger()
		log.Info("first")
		time.Sleep(time.Second)
		synctest.Wait() // the handler has the first record
		for i := range 1024 + 50 {
			log.Info("more", "i", i)
		}
		if n := q.Dropped(); n != 50 {
			t.Fatalf("got %d dropped records, want 50", n)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		q.Flush(ctx)
		if cancel(); said.Len() > 0 {
			t.Fatalf("got a log while the handler blocks: %s", said)
		}
		close(h.open)
		q.Flush(t.Context())
		lines := strings.Split(strings.TrimSpace(said.String()), "\n")
		last := `level=WARN msg="log records were dropped: the handler is too slow" count=50`
		if len(lines) != 1+1024+1 || lines[1024] != fmt.Sprintf("level=INFO msg=more i=%d", 1023) {
			t.Errorf("got %d lines, want 1026; the last two:\n%s", len(lines), strings.Join(lines[len(lines)-2:], "\n"))
		}
		if !strings.Contains(said.String(), last) {
			t.Errorf("got no line %s", last)
		}
	})
}

// Long text from clients is cut: it makes neither records nor the queue large.
func TestLongTextIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, h, said := newSlow()
		log := q.Logger()
		log.Info("first")
		time.Sleep(time.Second)
		synctest.Wait() // the handler has the first record
		long := strings.Repeat("ä", 30_000)
		log.Info("cut", "path", long, "stack", strings.Repeat("s", 2000))
		const stack = 100_000
		for range 20 {
			log.Info("more", "stack", strings.Repeat("s", stack))
		}
		if n := q.Dropped(); n != 20-(1<<20)/stack {
			t.Errorf("got %d dropped records", n)
		}
		close(h.open)
		q.Flush(t.Context())
		line := strings.Split(said.String(), "\n")[1]
		if want := "path=" + long[:512] + "… stack=" + strings.Repeat("s", 2000); !strings.HasSuffix(line, want) {
			t.Errorf("got log %.1000s", line)
		}
	})
}

func TestShort(t *testing.T) {
	for in, want := range map[string]string{
		"": "", strings.Repeat("a", 512): strings.Repeat("a", 512), strings.Repeat("a", 513): strings.Repeat("a", 512) + "…",
		"a" + strings.Repeat("ä", 300): "a" + strings.Repeat("ä", 255) + "…", strings.Repeat("\x80", 600): strings.Repeat("\x80", 508) + "…",
	} {
		if got := logqueue.Short(in); got != want {
			t.Errorf("%d bytes are cut to %q", len(in), got)
		}
	}
}

// All dropped records are reported, at most once a second.
func TestDroppedOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, h, said := newSlow()
		begun, over := time.Now(), make(chan struct{})
		go func() {
			for {
				select {
				case h.open <- struct{}{}:
					time.Sleep(time.Millisecond)
				case <-over:
					return
				}
			}
		}()
		for range 30 {
			for range 300 {
				q.Logger().Info("x")
			}
			time.Sleep(100 * time.Millisecond)
		}
		q.Flush(t.Context())
		close(over)
		time.Sleep(time.Second)
		told, lines := uint64(0), 0
		for line := range strings.Lines(said.String()) {
			if _, count, dropped := strings.Cut(line, " count="); dropped {
				n, err := strconv.ParseUint(strings.TrimSpace(count), 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				told += n
				lines++
			}
		}
		if most := int(time.Since(begun)/time.Second) + 1; told == 0 || told != q.Dropped() || lines > most {
			t.Errorf("%d of %d dropped records told of in %d lines, want all in at most %d", told, q.Dropped(), lines, most)
		}
	})
}

func TestHandlerPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, h, said := newSlow()
		q.Logger().Warn("panic")
		q.Logger().With("a", 1).WithGroup("g").Warn("after", "b", 2)
		close(h.open) // both records wait: the report of the lost first one follows the second
		q.Flush(t.Context())
		if want := "level=WARN msg=after a=1 g.b=2\n"; !strings.HasPrefix(said.String(), want) || q.Dropped() != 1 {
			t.Errorf("got log %q, want %q first; got %d dropped, want 1", said, want, q.Dropped())
		}
	})
}

// A handler that ends its goroutine loses only that record.
func TestHandlerEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, h, said := newSlow()
		close(h.open)
		q.Patient().Warn("exit")
		for range 2 {
			q.Logger().Warn("exit")
			q.Logger().Warn("after")
		}
		q.Flush(t.Context())
		if n := strings.Count(said.String(), "msg=after"); n != 2 || q.Dropped() != 3 {
			t.Errorf("got log %q and %d dropped, want 3", said, q.Dropped())
		}
	})
}

// The records of a patient logger have been passed on when it returns, unless the handler blocks: the logger waits a moment for
// that, once.
func TestPatientLogger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, h, said := newSlow()
		log := q.Patient()
		close(h.open)
		log.Info("immediately")
		if !strings.Contains(said.String(), "immediately") {
			t.Errorf("record was not passed on: got %q", said)
		}
		h.open = make(chan struct{})
		start := time.Now()
		for range 10 {
			log.Info("later")
		}
		if waited := time.Since(start); waited == 0 || waited > 100*time.Millisecond {
			t.Errorf("ten records waited %v for a blocked handler", waited)
		}
		close(h.open)
		q.Flush(t.Context())
		if n := strings.Count(said.String(), "later"); n != 10 {
			t.Errorf("got %d of 10 records passed on", n)
		}
	})
}

// A valueHandler adds the values of a record's context.
type valueHandler struct{ slog.Handler }

type valueKey struct{}

func (h valueHandler) Handle(ctx context.Context, r slog.Record) error {
	r.AddAttrs(slog.Any("value", ctx.Value(valueKey{})))
	return h.Handler.Handle(ctx, r)
}

// A handler finds the values of the context that a record was logged with, such as a trace, for patient loggers and others.
func TestContextOfARecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		q := logqueue.New(valueHandler{slog.NewTextHandler(&said, nil)})
		for i, log := range []*slog.Logger{q.Patient(), q.Logger()} {
			log.InfoContext(context.WithValue(t.Context(), valueKey{}, i), "record")
		}
		q.Flush(t.Context())
		for i := range 2 {
			if !strings.Contains(said.String(), fmt.Sprint("value=", i)) {
				t.Errorf("got no value %d: %s", i, &said)
			}
		}
	})
}

// countingLevels counts the calls of Enabled; it accepts Info and above.
type countingLevels struct {
	slog.Handler
	asked int
}

func (h *countingLevels) Enabled(_ context.Context, l slog.Level) bool {
	h.asked++
	return l >= slog.LevelInfo
}

// A level that the handler does not accept is not queued, until the handler is asked again.
func TestUnwantedLevels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &countingLevels{Handler: slog.DiscardHandler}
		q := logqueue.New(h)
		log := q.Logger()
		log.Info("first")
		q.Flush(t.Context())
		h.asked = 0
		for range 3 {
			for range 100 {
				log.Debug("x")
				synctest.Wait()
			}
			time.Sleep(time.Second)
		}
		if h.asked != 3 {
			t.Errorf("got %d calls of Enabled in three seconds", h.asked)
		}
	})
}
