package http2

import (
	"encoding/binary"

	"github.com/dunlinhttp/dunlin/internal/hpack"
)

// The identifiers of settings (RFC 9113 §6.5.2, RFC 8441 §3, RFC 9218 §2.1).
const (
	settingHeaderTableSize      = 0x1
	settingEnablePush           = 0x2
	settingMaxConcurrentStreams = 0x3
	settingInitialWindowSize    = 0x4
	settingMaxFrameSize         = 0x5
	settingMaxHeaderListSize    = 0x6
	settingEnableConnect        = 0x8
	settingNoPriorities         = 0x9

	settingLength = 6 // bytes
)

// greet appends the server's preface: SETTINGS, and a WINDOW_UPDATE that opens the connection's window to
// Limits.ConnWindow. Settings with default values are omitted.
func (c *Conn) greet() {
	begin := len(c.Out)
	c.Out = appendHeader(c.Out, frameHeader{kind: frameSettings})
	set := func(id uint16, value uint32) {
		c.Out = binary.BigEndian.AppendUint16(c.Out, id)
		c.Out = binary.BigEndian.AppendUint32(c.Out, value)
	}
	if c.lim.DecoderTable != hpack.DefaultTableSize {
		set(settingHeaderTableSize, uint32(c.lim.DecoderTable))
	}
	set(settingMaxConcurrentStreams, uint32(c.lim.MaxStreams))
	set(settingInitialWindowSize, uint32(c.lim.StreamWindow))
	set(settingMaxHeaderListSize, uint32(c.lim.Fields.MaxList))
	if c.lim.ConnectProtocol {
		set(settingEnableConnect, 1)
	}
	set(settingNoPriorities, 1)
	putHeader(c.Out[begin:], frameHeader{kind: frameSettings, length: len(c.Out) - begin - headerLength})
	c.refill()
}

// settingsFrame reads a SETTINGS frame: the client's settings, or the acknowledgment of the server's settings.
func (c *Conn) settingsFrame(h frameHeader, payload []byte) problem {
	switch {
	case h.stream != 0:
		return notStreamZero
	case h.has(flagAck) && h.length != 0, h.length%settingLength != 0:
		return wrongLength
	case h.has(flagAck):
		return c.settingsAck()
	}
	cost := h.length / (settingsShare * settingLength)
	if c.phase == phaseOpen {
		cost++
	}
	for range cost {
		if p := c.spend(SettingsFrames); p != noProblem {
			return p
		}
	}
	c.phase = phaseOpen
	c.sendWindow, c.withheld = c.sendWindow+c.withheld, 0
	if p := c.settings(payload); p != noProblem {
		return p
	}
	c.Out = appendHeader(c.Out, frameHeader{kind: frameSettings, flags: flagAck})
	return noProblem
}

// settingsShare is the number of settings that cost as many tokens as one SETTINGS frame. Settings cost tokens
// because some of them cause work for each stream.
const settingsShare = 16

// settings applies the settings of a payload in their order.
func (c *Conn) settings(payload []byte) problem {
	for ; len(payload) > 0; payload = payload[settingLength:] {
		if p := c.setting(binary.BigEndian.Uint16(payload), binary.BigEndian.Uint32(payload[2:])); p != noProblem {
			return p
		}
	}
	return noProblem
}

// settingsAck records that the client has acknowledged the server's settings. They apply to all later frames of the
// client.
func (c *Conn) settingsAck() problem {
	if c.acknowledged {
		return c.spend(SettingsFrames)
	}
	c.acknowledged = true
	if c.lim.DecoderTable != hpack.DefaultTableSize {
		c.decoder.SetAllowed(uint32(c.lim.DecoderTable))
	}
	for _, st := range c.streams {
		st.recvWindow += int32(c.lim.StreamWindow - initialWindow)
		c.refillStream(st)
	}
	return noProblem
}

func (c *Conn) setting(id uint16, value uint32) problem {
	switch id {
	case settingHeaderTableSize:
		c.encoder.SetAllowed(value)
	case settingEnablePush:
		if value > 1 {
			return badPush
		}
	case settingInitialWindowSize:
		if value > maxWindow {
			return badInitialWindow
		}
		return c.moveWindows(int64(value))
	case settingMaxFrameSize:
		if value < maxFrame || value > 1<<24-1 {
			return badMaxFrame
		}
	case settingEnableConnect:
		if value > 1 {
			return badConnectProtocol
		}
	case settingNoPriorities:
		if value > 1 || c.priorities != 0 && c.priorities != uint8(value)+1 {
			return badNoPriorities
		}
		c.priorities = uint8(value) + 1
	}
	return noProblem // unknown settings are ignored
}

// moveWindows changes the send window of every stream to a new initial size (RFC 9113 §6.9.2).
func (c *Conn) moveWindows(initial int64) problem {
	by := initial - int64(c.peerWindow)
	c.peerWindow = int32(initial)
	for _, st := range c.streams {
		if st.closed {
			continue
		}
		if st.sendWindow+by > maxWindow {
			return badInitialWindow
		}
		c.moveWindow(st, by)
	}
	return noProblem
}

// moveWindow changes the send window of a stream by a number of bytes, and adds the stream to the schedule or
// removes it accordingly.
func (c *Conn) moveWindow(st *Stream, by int64) {
	st.sendWindow += by
	switch {
	case st.queued && st.sendWindow <= 0:
		c.ready.remove(st)
	case st.wants && !st.queued && st.sendWindow > 0:
		c.enqueue(st)
	}
}
