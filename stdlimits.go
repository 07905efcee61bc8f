package dunlin

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"

	"github.com/dunlinhttp/dunlin/internal/admission"
)

// A stdListener keeps the bounds on connections for a server of net/http. What it
// accepts is counted until stdServer.count sees its end.
type stdListener struct {
	lastListener
	app    *App
	tls    bool // what it accepts speaks TLS
	once   sync.Once
	closed chan struct{} // no longer worth waiting for a slot
}

func newStdListener(a *App, ln net.Listener, tls bool) *stdListener {
	return &stdListener{lastListener: lastListener{Listener: ln}, app: a, tls: tls, closed: make(chan struct{})}
}

// Accept waits for a connection, and first until there may be one more.
func (l *stdListener) Accept() (net.Conn, error) {
	clients := &l.app.clients
	if clients.slots != nil {
		select {
		case clients.slots <- struct{}{}:
		default:
			select {
			case clients.slots <- struct{}{}:
			case <-l.closed:
				return nil, net.ErrClosed
			}
		}
	}
	for {
		c, err := l.lastListener.Accept()
		if err != nil {
			clients.freeSlot()
			return nil, err
		}
		if tcp, ok := c.(*net.TCPConn); ok && l.app.config.TCPKeepAlive != defaultKeepAlive {
			after := l.app.config.TCPKeepAlive // an error would show in the first read
			_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: after > 0, Idle: after, Interval: after})
		}
		if clients.addresses == nil || clients.addresses.Take(addrPortOf(c).Addr()) {
			return &stdConn{Conn: c, app: l.app}, nil
		}
		l.turnAway(c)
	}
}

// turnAway closes a connection that is one too many.
func (l *stdListener) turnAway(c net.Conn) {
	if n, due := l.app.shed.Note(admission.AddressLimit); due {
		l.app.aside.Warn("connections refused: their address has as many as it may",
			"latest", c.RemoteAddr().String(), "limit", l.app.config.MaxConnectionsPerAddress, "count", n)
	}
	if !l.tls {
		_, _ = c.Write(addressRefusal) // a new connection has room for it
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.CloseWrite()
		}
	}
	_ = c.Close()
}

// Close stops accepting.
func (l *stdListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.lastListener.Close()
}

// stop has Accept come to its end, after the connections that may still be taken
// from the backlog.
func (l *stdListener) stop() {
	l.once.Do(func() { close(l.closed) })
	l.lastListener.stop()
}

func (c *clients) freeSlot() {
	if c.slots != nil {
		<-c.slots
	}
}

// gone is told of the end of a connection that Accept returned.
func (c *clients) gone(conn net.Conn) {
	c.freeSlot()
	if c.addresses != nil {
		c.addresses.Release(addrPortOf(conn).Addr())
	}
}

// addrPortOf returns the address of a connection's peer, the zero AddrPort for none.
func addrPortOf(c net.Conn) netip.AddrPort {
	if tcp, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return tcp.AddrPort()
	}
	addr, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return netip.AddrPort{} // that of a unix socket
	}
	return addr
}

// lastOfConnection counts a request, and reports whether its connection may carry
// no other.
func (a *App) lastOfConnection(req *http.Request) bool {
	c, counted := req.Context().Value(stdConnKey{}).(*stdConn)
	return counted && c.requests.Add(1) >= int64(a.config.MaxRequestsPerConnection)
}

// tooManyHeaders answers a request with more headers than MaxHeaders. Their lines
// are not counted again: net/http has bounded their bytes.
func (a *App) tooManyHeaders(w http.ResponseWriter, req *http.Request) {
	resp := Problem(ProblemDetails{
		Status: http.StatusRequestHeaderFieldsTooLarge,
		Detail: fmt.Sprintf("too many fields (the limit is %d)", a.config.MaxHeaders),
	})
	w.Header().Set("Connection", "close")
	x := a.exchanges.Get().(*stdExchange)
	x.w, x.req = w, req
	x.request.begin(req.Method, req.URL.Path, req.URL.RawQuery, false)
	x.answerAlone(&resp, FromProtocol)
	x.release()
}
