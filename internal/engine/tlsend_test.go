//go:build linux

package engine_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/tlsmem/tlstest"
)

// awaitEnd adds a command that waits for its peer's end or for proceed, and answers with the one that happened.
func awaitEnd(h *lineHandler, set func(c *engine.Conn, f func())) (entered chan struct{}, proceed chan struct{}) {
	entered, proceed = make(chan struct{}), make(chan struct{})
	h.commands["await"] = func(d *engine.Driver, c *engine.Conn, _ string) {
		ended := make(chan struct{})
		set(c, func() { close(ended) })
		entered <- struct{}{}
		select {
		case <-ended:
			answer(d, "ended")
		case <-proceed:
			answer(d, "let go")
		}
		c.SetHangup(nil)
	}
	return entered, proceed
}

// A call learns that its peer has sent close_notify, which leaves the socket open.
func TestTLSCloseNotifyIsAHangup(t *testing.T) {
	onTLSVersions(t, func(t *testing.T, config *tls.Config) {
		for name, set := range map[string]func(c *engine.Conn, f func()){
			"at once":     (*engine.Conn).SetHangup,
			"after input": (*engine.Conn).SetHangupAfterInput,
		} {
			for _, command := range []string{"await\n", "hand await\n"} {
				for _, when := range []string{"before", "with", "while"} {
					t.Run(fmt.Sprint(name, " ", command[:4], " ", when), func(t *testing.T) {
						h := newLineHandler()
						seen := make(chan struct{})
						entered, _ := awaitEnd(h, func(c *engine.Conn, f func()) {
							if when == "before" {
								<-seen
							}
							set(c, f)
						})
						s := serveTLS(t, engine.Config{Loops: 1}, &engine.TLS{}, h)
						c := s.dialTLS(config)
						end := func() {
							if err := c.Conn.(*tls.Conn).CloseWrite(); err != nil {
								t.Fatal(err)
							}
						}
						c.send(command)
						switch when {
						case "with":
							end()
							<-entered
						case "while":
							<-entered
							end()
						case "before": // the loop sees it before any call waits for it
							end()
							other := s.dialTLS(config)
							other.send("echo seen\n")
							other.want("seen")
							close(seen)
							<-entered
						}
						c.want("ended")
						c.wantEOF()
					})
				}
			}
		}
	})
}

// A call also learns of close_notify after it has read all earlier input of its peer.
func TestTLSCloseNotifyAfterInputIsAHangup(t *testing.T) {
	const size = 100_000
	await := func(c *engine.Conn, ended, read chan struct{}, late bool) {
		set := func() { c.SetHangup(func() { close(ended) }) }
		if !late {
			set()
		}
		for n, buf := 0, make([]byte, 30_000); n < size; {
			k, err := c.Read(buf[:min(len(buf), size-n)], time.Minute)
			if n += k; err != nil {
				break
			}
		}
		if late {
			set()
		}
		read <- struct{}{}
		<-ended
		c.SetHangup(nil)
	}
	onTLSVersions(t, func(t *testing.T, config *tls.Config) {
		for _, late := range []bool{false, true} {
			for _, with := range []bool{false, true} {
				t.Run(fmt.Sprintf("asked late %v, with input %v", late, with), func(t *testing.T) {
					h := newLineHandler()
					read, begun := make(chan struct{}, 1), make(chan struct{})
					h.commands["load"] = func(d *engine.Driver, c *engine.Conn, _ string) {
						close(begun)
						await(c, make(chan struct{}), read, late)
						answer(d, "ended")
					}
					s := serveTLS(t, engine.Config{Loops: 1}, &engine.TLS{}, h)
					c, w := s.dialRecorder(config, 0)
					c.send("load\n")
					<-begun
					w.gather = with
					c.send(string(make([]byte, size)))
					if !with {
						<-read
					}
					if err := c.Conn.(*tls.Conn).CloseWrite(); err != nil {
						t.Fatal(err)
					}
					if err := w.release(); err != nil {
						t.Fatal(err)
					}
					c.want("ended")
					c.wantEOF()
				})
			}
		}
	})
}

// A record that has the length of close_notify, but is not one, is input.
func TestTLSRecordOfCloseNotifyLengthIsInput(t *testing.T) {
	h := newLineHandler()
	entered, proceed := awaitEnd(h, (*engine.Conn).SetHangup)
	s := serveTLS(t, engine.Config{Loops: 1}, &engine.TLS{}, h)
	other := s.dialTLS(nil)
	raw, c := s.dialRaw()
	for range 3 {
		if err := raw.Send(raw.Record(tlstest.Application, []byte("await\n"), 0)); err != nil {
			t.Fatal(err)
		}
		<-entered
		for _, piece := range []string{"ec", "ho", " h", "i\n"} {
			if err := raw.Send(raw.Record(tlstest.Application, []byte(piece), 0)); err != nil {
				t.Fatal(err)
			}
			other.send("echo seen\n")
			other.want("seen") // the loop has seen the record
		}
		proceed <- struct{}{}
		c.want("let go", "hi")
	}
	// An alert for a fatal error ends the connection, too.
	if err := raw.Send(raw.Record(tlstest.Application, []byte("await\n"), 0)); err != nil {
		t.Fatal(err)
	}
	<-entered
	if err := raw.Send(raw.Record(tlstest.Alert, []byte{2, 80}, 0)); err != nil { // internal_error
		t.Fatal(err)
	}
	eventually(t, "the connection is over", func() bool { return s.Stats().Conns == 1 })
}

// A writer that waits, and a call that reads the input meanwhile, also learn of close_notify.
func TestTLSCloseNotifyDuringCall(t *testing.T) {
	onTLSVersions(t, func(t *testing.T, config *tls.Config) {
		h := newLineHandler()
		begun, ended := make(chan struct{}), make(chan struct{}, 1)
		h.commands["fill"] = func(d *engine.Driver, c *engine.Conn, _ string) {
			c.SetHangup(func() { ended <- struct{}{} })
			close(begun)
			for range 4 { // more than the sockets hold of unread output
				if _, err := c.Write(make([]byte, 1<<20), time.Minute); err != nil {
					break
				}
			}
			c.SetHangup(nil)
		}
		h.commands["read"] = func(d *engine.Driver, c *engine.Conn, _ string) {
			c.SetHangup(func() { ended <- struct{}{} })
			begun <- struct{}{}
			_, err := c.Read(make([]byte, 10), time.Minute)
			c.SetHangup(nil)
			answer(d, fmt.Sprint(err))
		}
		s := serveTLS(t, engine.Config{Loops: 1}, &engine.TLS{}, h)
		c := s.dialTLS(config)
		c.send("fill\n")
		<-begun
		if err := c.Conn.(*tls.Conn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		<-ended
		if n, err := io.Copy(io.Discard, c.r); n != 4<<20 || err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}

		begun = make(chan struct{})
		c = s.dialTLS(config)
		c.send("read\n")
		<-begun
		if err := c.Conn.(*tls.Conn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		<-ended
		c.want("EOF")
		c.wantEOF()
	})
}

// Input that was read ahead is passed to the code that hijacks the connection.
func TestTLSHijackReturnsBufferedInput(t *testing.T) {
	h := newLineHandler()
	got := make(chan string, 1)
	seen := make(chan struct{})
	entered := make(chan struct{})
	h.commands["hijack"] = func(d *engine.Driver, c *engine.Conn, _ string) {
		c.SetHangup(func() {})
		entered <- struct{}{}
		<-seen
		conn, err := c.Hijack()
		if err != nil {
			t.Error(err)
			close(got)
			return
		}
		ahead := string(c.Unread())
		go func() {
			rest, _ := io.ReadAll(conn)
			_ = conn.Close()
			got <- ahead + string(rest)
		}()
	}
	s := serveTLS(t, engine.Config{Loops: 1}, &engine.TLS{}, h)
	other := s.dialTLS(nil)
	c := s.dialTLS(nil)
	c.send("hijack\n")
	<-entered
	c.send("hi")
	other.send("echo seen\n")
	other.want("seen")
	close(seen)
	c.send(" there")
	_ = c.Conn.(*tls.Conn).CloseWrite()
	if s := <-got; s != "hi there" {
		t.Errorf("the hijacker has got %q", s)
	}
	_ = net.Conn(c.Conn).Close()
}
