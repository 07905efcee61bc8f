//go:build linux

package stress_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/dunlinhttp/dunlin/bench/stress/pattern"
)

// soakBehaviours are the behaviours of clients that must not be affected. Together they send some hundred requests a second.
var soakBehaviours = []behaviour{
	{request: "GET /pid" + keptAlive, size: -1, think: 100 * time.Millisecond},
	{request: "GET /pid" + keptAlive, size: -1, think: 100 * time.Millisecond, once: true},
	{request: "GET /sleep/100" + keptAlive, size: -1, think: 100 * time.Millisecond},
	{request: "GET /stream/1/200000" + keptAlive, size: 200_000, think: 500 * time.Millisecond},
	{request: "POST /upload HTTP/1.1\r\nHost: holds\r\nContent-Length: 20000\r\n\r\n" + strings.Repeat("x", 20_000), size: -1, think: 500 * time.Millisecond},
	{request: "GET /stats" + keptAlive, size: -1, think: time.Second},
}

func (s *soakService) callers() *callers {
	c := &callers{t: s.t, addr: s.addr, ends: handovers, closes: true}
	c.start(4, soakBehaviours)
	s.t.Cleanup(func() {
		c.ending.Store(true)
		c.running.Wait()
	})
	return c
}

// A soakKind is a kind of client that must not affect the ordinary ones.
type soakKind struct {
	name  string
	count int
	think time.Duration // maximum time between two rounds
	round func(c *soakLoad, kept *keptConn) error
	free  bool // a short soak may end before the first round does

	secure bool // all clients use TLS; of other kinds, a third does
}

// named returns the name of the kind's clients with or without TLS.
func (k *soakKind) named(byTLS bool) string {
	if byTLS {
		return k.name + " by TLS"
	}
	return k.name
}

var soakKinds = []soakKind{
	{name: "pipelining", count: 8, think: 200 * time.Millisecond, round: (*soakLoad).pipeline},
	{name: "half-closing", count: 8, think: 500 * time.Millisecond, round: (*soakLoad).halfClose},
	{name: "panicking", count: 4, think: time.Second, round: (*soakLoad).panicking},
	{name: "uploading", count: 16, think: time.Second, round: (*soakLoad).upload},
	{name: "upload kept whole", count: 8, think: time.Second, round: (*soakLoad).uploadKept},
	{name: "listening for events", count: 40, think: time.Second, round: (*soakLoad).listen, free: true},
	{name: "resetting", count: 8, think: 200 * time.Millisecond, round: (*soakLoad).reset},
	{name: "reading slowly", count: 60, think: time.Second, round: (*soakLoad).readSlowly, free: true},
	{name: "sending slowly", count: 60, think: time.Second, round: (*soakLoad).sendSlowly, free: true},
	{name: "blocking", count: 40, think: 10 * time.Millisecond, round: (*soakLoad).block},
	{name: "HTTP/2", count: 8, think: 200 * time.Millisecond, round: (*soakLoad).http2, secure: true},
}

// A soakLoad has the clients of all soakKinds, and counts their rounds by name.
type soakLoad struct {
	t                 *testing.T
	addr              string
	tlsAddr           string
	ctx               context.Context
	cancel            context.CancelFunc
	h2                *http.Client
	running           sync.WaitGroup
	begun, done, lost tallies
	crossed           tallies // the server had already closed the connection
	complaints        atomic.Int64
}

// load starts clients of all kinds. size scales their number; 1 is the promised load.
func (s *soakService) load(size float64) *soakLoad {
	c := &soakLoad{t: s.t, addr: s.addr, tlsAddr: s.tlsAddr}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	s.t.Cleanup(c.end)
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // the identity of the certificate is not tested
		Protocols:       new(http.Protocols),
	}
	transport.Protocols.SetHTTP2(true)
	c.h2 = &http.Client{Transport: transport}
	for _, kind := range soakKinds {
		n := max(1, int(float64(kind.count)*size))
		byTLS := 0
		if !kind.secure {
			byTLS = max(1, n/3)
		}
		for i := range max(n, byTLS+1) {
			c.running.Go(func() { c.client(kind, i < byTLS) })
		}
	}
	return c
}

// end ends all clients.
func (c *soakLoad) end() {
	c.cancel()
	c.running.Wait()
	c.h2.CloseIdleConnections()
}

// errFree is the error of a client that the server may refuse or cut off.
var errFree = errors.New("the server may refuse this client")

// client repeats its round until the end.
func (c *soakLoad) client(kind soakKind, byTLS bool) {
	name := kind.named(byTLS)
	kept := &keptConn{ctx: c.ctx, addr: c.addr, byTLS: byTLS}
	if byTLS {
		kept.addr = c.tlsAddr
	}
	defer kept.close()
	for c.ctx.Err() == nil {
		select {
		case <-time.After(rand.N(kind.think)):
		case <-c.ctx.Done():
			return
		}
		c.begun.add(name)
		if kept.Conn == nil {
			kept.detector = nil
		}
		err := kind.round(c, kept)
		if kept.crossed(err) {
			c.crossed.add(name)
			continue
		}
		c.count(name, err)
	}
}

func (c *soakLoad) count(kind string, err error) {
	if c.ctx.Err() != nil {
		return // ended by the test
	}
	switch {
	case err == nil:
		c.done.add(kind)
	case errors.Is(err, errFree):
	default:
		c.lost.add(kind)
		if c.complaints.Add(1) <= 20 {
			c.t.Logf("%s: %v", kind, err)
		}
	}
}

// wantNothingLost logs the results of each kind, and fails if a round was lost.
func (c *soakLoad) wantNothingLost() {
	c.t.Helper()
	c.t.Logf("begun: %s", c.begun.String())
	c.t.Logf("of these ended well: %s", c.done.String())
	c.t.Logf("of these crossed the close of an idle connection: %s", c.crossed.String())
	if lost := c.lost.String(); lost != "" {
		c.t.Errorf("ended otherwise: %s", lost)
	}
	for _, kind := range soakKinds {
		for _, byTLS := range []bool{false, true} {
			name := kind.named(byTLS)
			if byTLS && kind.secure {
				continue
			}
			if c.begun.of(name) == 0 || c.done.of(name) == 0 && !kind.free {
				c.t.Errorf("%s: got %d rounds begun, %d ended well", name, c.begun.of(name), c.done.of(name))
			}
		}
	}
}

// tallies has a counter for each name.
type tallies struct {
	mu sync.Mutex
	by map[string]int
}

func (t *tallies) add(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.by == nil {
		t.by = map[string]int{}
	}
	t.by[name]++
}

func (t *tallies) of(name string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.by[name]
}

func (t *tallies) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var said []string
	for _, name := range slices.Sorted(maps.Keys(t.by)) {
		said = append(said, fmt.Sprintf("%s %d", name, t.by[name]))
	}
	return strings.Join(said, ", ")
}

// A keptConn is a client's connection, which it keeps until the server closes it.
type keptConn struct {
	ctx   context.Context
	addr  string
	byTLS bool
	net.Conn
	tcp      *net.TCPConn   // the TCP connection of Conn
	detector *closeDetector // between Conn and tcp
	in       *bufio.Reader
}

// closeWrite closes the sending direction. With TLS it sends close_notify and leaves the socket open.
func (k *keptConn) closeWrite() error { return k.Conn.(interface{ CloseWrite() error }).CloseWrite() }

// open opens a connection unless there is a usable one, like callers. It is closed when the clients end.
func (k *keptConn) open() error {
	if k.Conn != nil && closed(k.tcp) {
		k.close()
	}
	if k.Conn != nil {
		return nil
	}
	var d net.Dialer
	conn, err := d.DialContext(k.ctx, "tcp", k.addr)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	context.AfterFunc(k.ctx, func() { _ = conn.Close() })
	k.tcp = conn.(*net.TCPConn)
	k.detector = &closeDetector{TCPConn: k.tcp}
	conn = k.detector
	if k.byTLS {
		secure := tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
		if err := secure.HandshakeContext(k.ctx); err != nil {
			_ = conn.Close()
			return fmt.Errorf("handshake: %w", err)
		}
		conn = secure
	}
	k.Conn, k.in = conn, bufio.NewReader(conn)
	return nil
}

// A closeDetector is a connection that detects whether its last request crossed the server's close, see crossed. The request may
// have several segments. If the server has begun to read it and closes the connection, the connection is usually reset; that
// is not a crossing.
type closeDetector struct {
	*net.TCPConn
	reset, crossed atomic.Bool
}

// crossed reports whether err was caused by a request that crossed the server's close of the connection.
func (k *keptConn) crossed(err error) bool {
	return k.detector != nil && k.detector.crossed.Load() && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ENOTCONN))
}

func (m *closeDetector) recordError(err error) {
	if errors.Is(err, syscall.ECONNRESET) {
		m.reset.Store(true)
	}
}

func (m *closeDetector) Read(p []byte) (int, error) {
	n, err := m.TCPConn.Read(p)
	m.recordError(err)
	return n, err
}

func (m *closeDetector) Write(p []byte) (int, error) {
	n, err := m.TCPConn.Write(p)
	m.recordError(err)
	return n, err
}

func (m *closeDetector) Close() error {
	if raw, err := m.SyscallConn(); err == nil && !m.reset.Load() {
		_ = raw.Control(func(fd uintptr) {
			poll := []unix.PollFd{{Fd: int32(fd)}}
			_, _ = unix.Poll(poll, 0)
			if poll[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0 {
				m.crossed.Store(true)
			}
		})
	}
	return m.TCPConn.Close()
}

func (k *keptConn) close() {
	if k.Conn != nil {
		_ = k.Conn.Close()
		k.Conn = nil
	}
}

// answer reads an answer and returns its body. last reports that the connection is closed.
func (k *keptConn) answer(status int) (body []byte, last bool, err error) {
	resp, err := http.ReadResponse(k.in, nil)
	if err == nil {
		body, err = io.ReadAll(resp.Body)
	}
	if err == nil && resp.StatusCode != status {
		err = fmt.Errorf("status %d, want %d: %.100q", resp.StatusCode, status, body)
	}
	if err != nil || resp.Close {
		k.close()
		return body, true, err
	}
	return body, false, nil
}

// pipelined is the number of requests in a batch.
const pipelined = 16

// pipeline sends a batch of requests and expects the answers in order. After an answer with Connection: close, the other
// requests may be retried (RFC 9112, section 9.3.2).
func (c *soakLoad) pipeline(k *keptConn) error {
	if err := k.open(); err != nil {
		return err
	}
	var batch bytes.Buffer
	first := rand.N(1_000_000)
	for i := range pipelined {
		fmt.Fprintf(&batch, "GET /number/%d%s", first+i, keptAlive)
	}
	if _, err := k.Write(batch.Bytes()); err != nil {
		k.close()
		return err
	}
	for i := range pipelined {
		body, last, err := k.answer(http.StatusOK)
		if err == nil && string(body) != strconv.Itoa(first+i) {
			err = fmt.Errorf("%q, want %d", body, first+i)
		}
		if err != nil {
			k.close()
			return fmt.Errorf("answer %d: %w", i, err)
		}
		if last {
			return nil
		}
	}
	return nil
}

// halfClose sends a request, closes the sending direction, and waits for the answer.
func (c *soakLoad) halfClose(k *keptConn) error {
	k.close()
	if err := k.open(); err != nil {
		return err
	}
	defer k.close()
	if _, err := io.WriteString(k, "GET /sleep/20"+keptAlive); err != nil {
		return err
	}
	if err := k.closeWrite(); err != nil {
		return err
	}
	_, _, err := k.answer(http.StatusOK)
	return err
}

func (c *soakLoad) panicking(k *keptConn) error {
	if err := k.open(); err != nil {
		return err
	}
	if _, err := io.WriteString(k, "GET /panic"+keptAlive); err != nil {
		k.close()
		return err
	}
	_, _, err := k.answer(http.StatusInternalServerError)
	return err
}

// block requests a slow action.
func (c *soakLoad) block(k *keptConn) error {
	if err := k.open(); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(k, "GET /sleep/%d%s", 50+rand.N(200), keptAlive); err != nil {
		k.close()
		return err
	}
	_, _, err := k.answer(http.StatusOK)
	return err
}

// upload sends a megabyte that the server does not keep.
func (c *soakLoad) upload(k *keptConn) error { return c.uploadTo(k, "/upload", 1_000_000) }

// uploadKept sends a body that the server buffers completely. The server may refuse it if there is no memory.
func (c *soakLoad) uploadKept(k *keptConn) error { return c.uploadTo(k, "/keep", 256<<10) }

func (c *soakLoad) uploadTo(k *keptConn, path string, size int64) error {
	hash := sha256.New()
	var body bytes.Buffer
	fmt.Fprintf(&body, "POST %s HTTP/1.1\r\nHost: holds\r\nContent-Length: %d\r\n\r\n", path, size)
	err := pattern.Pieces(rand.Uint64(), size, func(piece []byte) error {
		_, _ = hash.Write(piece)
		_, err := body.Write(piece)
		return err
	})
	if err != nil {
		return err
	}
	if err := k.open(); err != nil { // opened last, because an idle connection may be closed at any time
		return err
	}
	conn, sent := k.Conn, make(chan error, 1)
	go func() { // an answer may arrive before the whole body is sent
		_, err := conn.Write(body.Bytes())
		sent <- err
	}()
	resp, err := http.ReadResponse(k.in, nil)
	var said []byte
	if err == nil {
		said, err = io.ReadAll(resp.Body)
	}
	refused := err == nil && resp.StatusCode == http.StatusServiceUnavailable
	if want := fmt.Sprintf("%d %x", size, hash.Sum(nil)); err == nil && !refused && string(said) != want {
		err = fmt.Errorf("status %d with %.100q, want %s", resp.StatusCode, said, want)
	}
	if err != nil { // the write ends if the connection is closed, or at the deadline
		_ = k.tcp.SetWriteDeadline(time.Now().Add(patience))
		<-sent
		k.close()
		return err
	}
	if refused || resp.Close {
		k.close()
	}
	<-sent
	return nil
}

// listen reads numbered events until the server or this client ends the stream. No event may be missing, and the stream must
// end regularly.
func (c *soakLoad) listen(k *keptConn) error {
	k.close()
	if err := k.open(); err != nil {
		return err
	}
	defer k.close()
	if _, err := io.WriteString(k, "GET /events"+keptAlive); err != nil {
		return err
	}
	resp, err := http.ReadResponse(k.in, nil)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	leaves := 50 + rand.N(500) // number of events after which this client leaves
	next := 1
	for lines := bufio.NewScanner(resp.Body); ; {
		if !lines.Scan() {
			if err := lines.Err(); err != nil {
				return fmt.Errorf("before event %d: %w", next, err)
			}
			return nil
		}
		number, isID := strings.CutPrefix(lines.Text(), "id: ")
		if !isID {
			continue
		}
		if number != strconv.Itoa(next) {
			return fmt.Errorf("event %s, want %d", number, next)
		}
		if next++; next > leaves {
			return nil
		}
	}
}

// reset resets the connection during a request.
func (c *soakLoad) reset(k *keptConn) error {
	k.close()
	if err := k.open(); err != nil {
		return err
	}
	defer func() {
		_ = k.tcp.Close() // so that no close_notify is sent
		k.close()
	}()
	for _, piece := range [][]string{
		{"GET /pi"},
		{"GET /sleep/50" + keptAlive},
		{"GET /stream/1/5000000" + keptAlive},
		{"GET /zeros/1000000" + keptAlive},
		{"POST /keep HTTP/1.1\r\nHost: holds\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("x", 50_000)},
		{"POST /upload HTTP/1.1\r\nHost: holds\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc"},
		{"GET /events" + keptAlive},
	}[rand.N(7)] {
		_, _ = io.WriteString(k, piece)
	}
	time.Sleep(rand.N(50 * time.Millisecond))
	_ = k.tcp.SetLinger(0)
	return nil
}

const slowRate = 12_000 // bytes a second

// readSlowly downloads a megabyte, which takes more than a minute at its rate.
func (c *soakLoad) readSlowly(k *keptConn) error {
	k.close()
	if err := k.open(); err != nil {
		return err
	}
	defer k.close()
	_ = k.tcp.SetReadBuffer(8 << 10)
	path := []string{"/zeros/1000000", "/stream/1/1000000"}[rand.N(2)]
	if _, err := io.WriteString(k, "GET "+path+keptAlive); err != nil {
		return errFree
	}
	const steps = 4
	for buf := make([]byte, slowRate/steps); ; {
		if _, err := io.ReadFull(k.Conn, buf); err != nil {
			return errFree // cut off, or complete
		}
		select {
		case <-time.After(time.Second / steps):
		case <-c.ctx.Done():
			return errFree
		}
	}
}

// sendSlowly sends half of a body at once, and the rest at the minimum rate.
func (c *soakLoad) sendSlowly(k *keptConn) error {
	k.close()
	if err := k.open(); err != nil {
		return err
	}
	defer k.close()
	path := []string{"/keep", "/upload"}[rand.N(2)]
	const size = 1 << 20
	if _, err := fmt.Fprintf(k, "POST %s HTTP/1.1\r\nHost: holds\r\nContent-Length: %d\r\n\r\n%s", path, size, make([]byte, size/2)); err != nil {
		return errFree
	}
	for piece := make([]byte, 300); ; {
		select {
		case <-time.After(time.Second):
		case <-c.ctx.Done():
			return errFree
		}
		if closed(k.tcp) {
			return errFree
		}
		if _, err := k.Write(piece); err != nil {
			return errFree
		}
	}
}

// http2 sends four concurrent requests over HTTP/2, on a connection that all clients of the kind share. Go's client retries
// requests that a GOAWAY reports as not processed.
func (c *soakLoad) http2(*keptConn) error {
	var all errgroup.Group
	for range 4 {
		all.Go(func() error { return c.stream(c.h2) })
	}
	return all.Wait()
}

func (c *soakLoad) stream(client *http.Client) error {
	n := strconv.Itoa(rand.N(1_000_000))
	method, path, body, want := http.MethodGet, "/number/"+n, []byte(nil), []byte(n)
	if rand.N(4) == 0 {
		method, path, body = http.MethodPost, "/upload", bytes.Repeat([]byte("x"), 20_000)
		want = fmt.Appendf(nil, "%d %x", len(body), sha256.Sum256(body))
	}
	request, err := http.NewRequestWithContext(c.ctx, method, "https://"+c.tlsAddr+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	got, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode != http.StatusOK || resp.ProtoMajor != 2 || !bytes.Equal(got, want)) {
		err = fmt.Errorf("status %d by %s with %.100q, want %s", resp.StatusCode, resp.Proto, got, want)
	}
	return err
}
