//go:build linux

package load

import (
	"context"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// A generator does all work of an open loop on one thread. It sends the requests that are due, receives responses, and sleeps in
// between. Because it runs on the same machine as the server that it measures, it does little work for a request: it uses no
// goroutine, no timer and no allocation. It reads only the head of a response, and the kernel discards the rest.
//
// Requests have numbers. The numbers are in the order in which the requests become due and are sent:
//
//	0 ≤ oldest ≤ sent ≤ due ≤ total
//
// The requests from oldest to sent may still wait for their responses. The first lead requests are not counted.
type generator struct {
	OpenLoop
	tally   *tally
	lead    int
	total   int
	counted time.Time     // time at which the first request that is counted is due
	cpu     time.Duration // CPU time that was used before counted
	start   time.Time
	request []byte
	to      unix.Sockaddr
	family  int

	epfd   int
	events [512]unix.EpollEvent
	conns  []loadConn
	free   []int32 // a ring of the indexes in conns without a request; the connection that has been free for longest is used first, because independent clients take turns
	freeAt int
	frees  int

	due, sent, oldest int
	asked             []int32 // indexes in conns by request; answered if the request is settled
	scratch           [4 << 10]byte
}

// answered replaces the index of the connection in asked when a request is settled.
const answered = -1

// A loadConn is a connection that is open or will be opened.
type loadConn struct {
	fd      int // 0: not open
	request int // request that waits for a response; -1 if none does
	opening bool
	answer  answer
	kept    []byte // an incomplete head or line; rarely needed
}

// The rate during the lead-in is Rate divided by leadShare.
const leadShare = 4

// longSleep is the maximum duration of a sleep, so that the generator soon detects the end of the context.
const longSleep = 10 * time.Millisecond

// generate does the work of OpenLoop.Run. It runs on a thread of its own.
func (o OpenLoop) generate(ctx context.Context) (OpenLoopResult, error) {
	g, err := o.newGenerator()
	if err != nil {
		return OpenLoopResult{}, fmt.Errorf("open loop: %w", err)
	}
	defer g.close()
	// By default the kernel may extend each sleep by 50 µs.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	g.start = time.Now()
	for g.oldest < g.total {
		if err := ctx.Err(); err != nil {
			return OpenLoopResult{}, err
		}
		g.release()
		for g.sent < g.due && g.frees > 0 {
			g.send()
		}
		g.giveUp()
		if err := g.handleResponses(); err != nil {
			return OpenLoopResult{}, fmt.Errorf("open loop: %w", err)
		}
	}
	result := g.tally.result()
	result.Due, result.Took, result.CPU = int64(g.total-g.lead), time.Since(g.counted), ownCPU()-g.cpu
	return result, nil
}

func (o OpenLoop) newGenerator() (*generator, error) {
	g := &generator{OpenLoop: o, tally: newTally(o.Patience), request: requestFor(o.Addr, o.Path)}
	addr, err := net.ResolveTCPAddr("tcp", o.Addr)
	if err != nil {
		return nil, err
	}
	if ip := addr.IP.To4(); ip != nil {
		g.family, g.to = unix.AF_INET, &unix.SockaddrInet4{Port: addr.Port, Addr: [4]byte(ip)}
	} else {
		g.family, g.to = unix.AF_INET6, &unix.SockaddrInet6{Port: addr.Port, Addr: [16]byte(addr.IP.To16())}
	}
	if g.epfd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, err
	}
	g.lead = int(o.Rate / leadShare * o.LeadIn.Seconds())
	g.total = g.lead + int(o.Rate*o.Duration.Seconds())
	g.asked = make([]int32, g.total)
	g.conns = make([]loadConn, o.Connections)
	g.free = make([]int32, o.Connections)
	for i := range g.conns {
		g.conns[i].request = -1
		g.setFree(i)
	}
	return g, nil
}

func (g *generator) close() {
	for i := range g.conns {
		g.drop(&g.conns[i])
	}
	unix.Close(g.epfd)
}

func (g *generator) dueAt(request int) time.Time {
	after, rate := g.start, g.Rate/leadShare
	if request >= g.lead {
		after, rate, request = g.start.Add(g.LeadIn), g.Rate, request-g.lead
	}
	return after.Add(time.Duration(float64(request) * float64(time.Second) / rate))
}

// release counts the requests that have become due.
func (g *generator) release() {
	for now := time.Now(); g.due < g.total; g.due++ {
		late := now.Sub(g.dueAt(g.due))
		if late < 0 {
			return
		}
		if g.due == g.lead {
			g.counted, g.cpu = now, ownCPU()
		}
		if g.due >= g.lead {
			record(g.tally.lag, late)
		}
	}
}

func (g *generator) setFree(conn int) {
	g.free[(g.freeAt+g.frees)%len(g.free)] = int32(conn)
	g.frees++
}

// send sends the next request on the connection that has been free for longest.
func (g *generator) send() {
	conn := g.free[g.freeAt]
	g.freeAt = (g.freeAt + 1) % len(g.free)
	g.frees--
	c := &g.conns[conn]
	c.request, c.answer = g.sent, answer{}
	g.asked[g.sent] = conn
	g.sent++
	var err error
	if c.fd == 0 {
		err = g.open(conn)
	} else {
		err = g.write(c)
	}
	if err != nil {
		g.settle(c, 0)
	}
}

// open begins to open a connection.
func (g *generator) open(conn int32) error {
	fd, err := unix.Socket(g.family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	c := &g.conns[conn]
	c.fd, c.opening = fd, true
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
		return err
	}
	if err := unix.Connect(fd, g.to); err != nil && err != unix.EINPROGRESS {
		return err
	}
	event := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET, Fd: conn}
	return unix.EpollCtl(g.epfd, unix.EPOLL_CTL_ADD, fd, &event)
}

func (g *generator) write(c *loadConn) error {
	n, err := unix.Write(c.fd, g.request)
	if err == nil && n < len(g.request) {
		err = unix.EAGAIN // the buffer of the socket had room for all earlier requests
	}
	return err
}

func (g *generator) drop(c *loadConn) {
	if c.fd != 0 {
		unix.Close(c.fd)
	}
	c.fd, c.opening, c.kept = 0, false, c.kept[:0]
}

// settle records the result of the request on c: the status of the response, or 0 if the request has no response. If it has none,
// settle closes the connection.
func (g *generator) settle(c *loadConn, status int) {
	g.count(c.request, time.Since(g.dueAt(c.request)), status)
	if status == 0 || c.answer.close {
		g.drop(c)
	}
	g.setFree(int(g.asked[c.request]))
	g.asked[c.request] = answered
	c.request = -1
}

// count counts the result of a request, unless the request belongs to the lead-in.
func (g *generator) count(request int, latency time.Duration, status int) {
	if request >= g.lead {
		g.tally.add(latency, status)
	}
}

// giveUp settles requests for which neither a response nor a free connection arrived in time.
func (g *generator) giveUp() {
	now := time.Now()
	for g.oldest < g.due {
		if g.oldest < g.sent && g.asked[g.oldest] == answered {
			g.oldest++
			continue
		}
		if now.Sub(g.dueAt(g.oldest)) < g.Patience {
			return
		}
		if g.oldest < g.sent {
			g.settle(&g.conns[g.asked[g.oldest]], 0)
		} else {
			g.count(g.sent, now.Sub(g.dueAt(g.oldest)), 0)
			g.asked[g.sent] = answered
			g.sent++
		}
	}
}

// handleResponses waits for responses until a request becomes due or must be given up. It handles the responses that have
// arrived.
func (g *generator) handleResponses() error {
	wait := longSleep
	if g.due < g.total {
		wait = min(wait, time.Until(g.dueAt(g.due)))
	}
	if g.oldest < g.due {
		wait = min(wait, time.Until(g.dueAt(g.oldest).Add(g.Patience)))
	}
	if wait > 0 {
		t := unix.NsecToTimespec(int64(wait))
		if _, err := unix.Ppoll([]unix.PollFd{{Fd: int32(g.epfd), Events: unix.POLLIN}}, &t, nil); err != nil && err != unix.EINTR {
			return err
		}
	}
	n, err := unix.EpollWait(g.epfd, g.events[:], 0)
	if err != nil && err != unix.EINTR {
		return err
	}
	for _, event := range g.events[:max(n, 0)] {
		c := &g.conns[event.Fd]
		if c.opening && event.Events&unix.EPOLLOUT != 0 {
			c.opening = false
			if err := g.write(c); err != nil {
				g.settle(c, 0)
				continue
			}
		}
		if event.Events&^unix.EPOLLOUT != 0 {
			g.receive(c)
		}
		if event.Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0 && c.request < 0 {
			g.drop(c)
		}
	}
	return nil
}

// receive handles the data that has arrived on c.
func (g *generator) receive(c *loadConn) {
	status, err := g.read(c)
	switch {
	case c.request < 0:
		g.drop(c) // there is no request on c, so the server has closed the connection
	case err != nil:
		g.settle(c, 0)
	case status != 0:
		g.settle(c, status)
	}
}

// read returns the status of a complete response, or 0. Data that read leaves in the socket causes another event.
func (g *generator) read(c *loadConn) (status int, err error) {
	for {
		var n, room int
		if left := c.answer.left; left > 0 {
			room = int(min(left, 1<<30))
			n, err = discard(c.fd, room)
			c.answer.left -= int64(n)
		} else {
			kept := copy(g.scratch[:], c.kept)
			room = len(g.scratch) - kept
			n, err = unix.Read(c.fd, g.scratch[kept:])
			if n > 0 {
				in := g.scratch[:kept+n]
				var used int
				if used, err = c.answer.feed(in); err != nil {
					return 0, err
				}
				c.kept = append(c.kept[:0], in[used:]...)
			}
		}
		switch {
		case err == unix.EAGAIN:
			return 0, nil
		case err != nil:
			return 0, err
		case n == 0:
			return 0, errAnswer
		case c.request < 0 || len(c.kept) > 0 && c.answer.done():
			return 0, errAnswer // a response arrived without a request
		case c.answer.done():
			return c.answer.status, nil
		case n < room:
			return 0, nil
		}
	}
}

// discard removes up to n bytes from a TCP socket without copying them (tcp(7)). It returns 0 at the end of the stream.
func discard(fd, n int) (int, error) {
	taken, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), 0, uintptr(n), unix.MSG_TRUNC, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(taken), nil
}
