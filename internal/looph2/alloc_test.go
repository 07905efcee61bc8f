package looph2_test

import (
	"io"
	"runtime"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/invariants"
)

// An ordinary request allocates nothing, with and without a body.
func TestStreamsAllocateNothing(t *testing.T) {
	if invariants.Enabled {
		t.Skip("with the race detector each request is made anew")
	}
	if runtime.GOOS != "linux" {
		t.Skip("the loop engine runs on Linux only")
	}
	s := startH2(t, dunlin.Config{Engine: dunlin.EngineLoop}, func(app *dunlin.App) {
		app.Get("/hello", func(*dunlin.Request) dunlin.Response { return dunlin.Text("Hello, World!") })
		app.Post("/count", func(r *dunlin.Request) dunlin.Response {
			if body, err := r.Bytes(); err != nil || len(body) != 5 {
				return dunlin.Empty().Status(500)
			}
			return dunlin.Text("five")
		})
	})
	get := append([]byte{0x82, 0x86, 0x04, 6}, "/hello\x01\x01a"...)
	post := append([]byte{0x83, 0x86, 0x04, 6}, "/count\x01\x01a"...)
	c := newH2Conn(t, s.addr)
	c.wantFrame(frameSettings)
	_ = c.frame(frameSettings, 1, 0)
	_ = c.frame(8, 0, 0, 0x7f, 0, 0, 0) // WINDOW_UPDATE: there is room for all answers
	id, buf := uint32(1), make([]byte, 64<<10)
	out := make([]byte, 0, 256)
	ask := func() {
		out = appendFrame(out[:0], frameHeaders, 5, id, get)
		out = appendFrame(out, frameHeaders, 4, id+2, post)
		out = appendFrame(out, 0, 1, id+2, []byte("12345"))
		if _, err := c.Write(out); err != nil {
			t.Fatal(err)
		}
		for ended := 0; ended < 2; {
			if _, err := io.ReadFull(c, buf[:9]); err != nil {
				t.Fatal(err)
			}
			if n := int(buf[1])<<8 | int(buf[2]); buf[4]&1 != 0 && buf[3] <= 1 {
				ended++
				_, _ = io.ReadFull(c, buf[:n])
			} else {
				_, _ = io.ReadFull(c, buf[:n])
			}
		}
		id += 4
	}
	for range 200 {
		ask()
	}
	const rounds = 2000
	least := 1e9
	for range 5 { // whatever else the process does may allocate
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range rounds {
			ask()
		}
		runtime.ReadMemStats(&after)
		least = min(least, float64(after.Mallocs-before.Mallocs)/rounds)
	}
	if least > 0.1 {
		t.Errorf("%.2f allocations for two requests, want none", least)
	}
}

func appendFrame(b []byte, kind, flags byte, stream uint32, payload []byte) []byte {
	b = append(b, 0, byte(len(payload)>>8), byte(len(payload)), kind, flags, byte(stream>>24), byte(stream>>16), byte(stream>>8), byte(stream))
	return append(b, payload...)
}
