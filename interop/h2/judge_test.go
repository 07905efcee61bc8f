package h2_test

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/net/http2"
)

// Violations that no client behaviour excuses in a server.

func (p *peer) wrong(format string, args ...any) {
	p.faults = append(p.faults, fmt.Sprintf(format, args...))
}

// reply sends frames without waiting, from where frames are read.
func (p *peer) reply(f string) {
	p.countSent(f)
	p.out.WriteString(f)
}

// checkFrame judges a received frame.
func (p *peer) checkFrame(f http2.Frame) {
	id := f.Header().StreamID
	if _, ok := f.(*http2.SettingsFrame); !ok && !p.greeted {
		if _, ok := f.(*http2.GoAwayFrame); !ok { // to a client with an invalid preface
			p.wrong("%v before its SETTINGS", f.Header())
		}
	}
	if id != 0 && !p.asked[id] {
		p.wrong("%v on a stream that was not opened", f.Header())
	}
	switch f := f.(type) {
	case *http2.SettingsFrame:
		p.settings(f)
	case *http2.PingFrame:
		if f.IsAck() {
			p.pongs = append(p.pongs, string(f.Data[:]))
		} else {
			p.reply(frame(tPing, ack, 0, string(f.Data[:])))
		}
	case *http2.GoAwayFrame:
		if n := len(p.away); n > 0 && f.LastStreamID > p.away[n-1].last {
			p.wrong("GOAWAY %d after %d", f.LastStreamID, p.away[n-1].last)
		}
		p.away = append(p.away, goAway{f.LastStreamID, f.ErrCode, string(f.DebugData())})
	case *http2.WindowUpdateFrame:
		p.room[id] += int64(f.Increment)
		if p.room[id] > 1<<31-1 {
			p.wrong("a window of %d", p.room[id])
		}
	case *http2.RSTStreamFrame:
		a := p.stream(id)
		a.reset, a.code = true, f.ErrCode
	case *http2.MetaHeadersFrame:
		p.fields(id, f)
	case *http2.DataFrame:
		p.data(id, f)
	case *http2.PushPromiseFrame:
		p.wrong("PUSH_PROMISE")
	}
}

func (p *peer) settings(f *http2.SettingsFrame) {
	if f.IsAck() {
		p.acked++
		if len(p.pending) == 0 {
			p.wrong("an acknowledgement of no SETTINGS")
			return
		}
		if initial := p.pending[0]; initial >= 0 {
			for _, a := range p.streams {
				a.window += initial - p.initial
			}
			p.initial = initial
		}
		p.pending = p.pending[1:]
		return
	}
	before := p.initialRoom()
	if err := f.ForeachSetting(func(s http2.Setting) error {
		p.server[s.ID] = s.Val
		return s.Valid()
	}); err != nil {
		p.wrong("its SETTINGS: %v", err)
	}
	for id := range p.room {
		if id != 0 {
			p.room[id] += p.initialRoom() - before
		}
	}
	p.greeted = true
	p.reply(frame(tSettings, ack, 0))
}

// fields takes the head of an answer, or its trailers.
func (p *peer) fields(id uint32, f *http2.MetaHeadersFrame) {
	a := p.stream(id)
	if a.over() {
		p.wrong("stream %d: HEADERS after its end", id)
		return
	}
	fields := map[string][]string{}
	for _, field := range f.RegularFields() {
		fields[field.Name] = append(fields[field.Name], field.Value)
		switch field.Name {
		case "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade":
			p.wrong("stream %d: an answer has %s", id, field.Name)
		}
	}
	a.ended = f.StreamEnded()
	status := f.PseudoValue("status")
	switch {
	case a.status != "" && (status != "" || !a.ended):
		p.wrong("stream %d: a second head, %v", id, f.Fields)
	case a.status != "":
		a.trailers = fields
	case len(status) != 3:
		p.wrong("stream %d: an answer with status %q", id, status)
	case status[0] == '1':
		if a.ended {
			p.wrong("stream %d: ends with %s", id, status)
		}
		a.interim = append(a.interim, strings.TrimSpace(status+" "+strings.Join(fields["link"], ", ")))
	default:
		a.status, a.fields = status, fields
	}
	p.length(id, a)
}

// data takes a piece of a body.
func (p *peer) data(id uint32, f *http2.DataFrame) {
	a, n := p.stream(id), int64(f.Length)
	p.window -= n
	a.window -= n
	switch {
	case a.over():
		p.wrong("stream %d: DATA after its end", id)
	case a.status == "":
		p.wrong("stream %d: DATA before a head", id)
	case n > 0 && (a.window < 0 || p.window < 0) && !p.unsure:
		p.wrong("stream %d: %d bytes of DATA beyond the windows, now %d and %d", id, n, a.window, p.window)
	}
	a.body.Write(f.Data())
	a.ended = f.StreamEnded()
	p.length(id, a)
	if !p.quiet && n > 0 {
		p.reply(frame(tWindow, 0, 0, u32(uint32(n))))
		if !a.ended {
			p.reply(frame(tWindow, 0, id, u32(uint32(n))))
		}
	}
}

// length compares Content-Length with the body of an answer that has ended.
func (p *peer) length(id uint32, a *answer) {
	said, ok := a.fields["content-length"]
	if !a.ended || !ok || a.body.Len() == 0 { // HEAD and 304 have a length without a body
		return
	}
	if n, err := strconv.Atoi(said[0]); err != nil || len(said) != 1 || n != a.body.Len() {
		p.wrong("stream %d: Content-Length %q of %d bytes", id, said, a.body.Len())
	}
}
