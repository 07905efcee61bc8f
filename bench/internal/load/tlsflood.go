package load

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// TLSFlood begins full handshakes and never completes them. Each connection sends a ClientHello, waits for the first bytes of
// the response, and is reset. A handshake costs the server a signature, and the client almost nothing.
type TLSFlood struct {
	Addr     string
	Rate     int // connections per second; a connection that exceeds maxFlooding is omitted
	Duration time.Duration
}

// TLSFloodResult counts connections.
type TLSFloodResult struct {
	Asked    int64 `json:"asked"`
	Answered int64 `json:"answered"` // connections to which the server has responded
}

// maxFlooding is the maximum number of connections that a TLSFlood has open at the same time.
const maxFlooding = 3000

// Run returns after Duration.
func (f TLSFlood) Run(ctx context.Context) (r TLSFloodResult, err error) {
	hello, err := clientHello()
	if err != nil {
		return r, err
	}
	ctx, cancel := context.WithTimeout(ctx, f.Duration)
	defer cancel()
	var answered atomic.Int64
	var all sync.WaitGroup
	room := make(chan struct{}, maxFlooding)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for began, asked := time.Now(), 0; ctx.Err() == nil; <-tick.C {
		for due := int(time.Since(began).Seconds() * float64(f.Rate)); asked < due; asked++ {
			select {
			case room <- struct{}{}:
				r.Asked++
				all.Go(func() {
					if f.begin(ctx, hello) {
						answered.Add(1)
					}
					<-room
				})
			default:
			}
		}
	}
	all.Wait()
	r.Answered = answered.Load()
	return r, nil
}

// begin begins a handshake and reports whether the server has responded.
func (f TLSFlood) begin(ctx context.Context, hello []byte) bool {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", f.Addr)
	if err != nil {
		return false
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if conn.(*net.TCPConn).SetLinger(0) != nil {
		return false
	}
	if _, err := conn.Write(hello); err != nil {
		return false
	}
	n, _ := conn.Read(make([]byte, 64))
	return n > 0
}

// clientHello returns the ClientHello of a client that has no session.
func clientHello() ([]byte, error) {
	client, server := net.Pipe()
	defer server.Close()
	go func() {
		_ = tls.Client(client, &tls.Config{InsecureSkipVerify: true, ServerName: "localhost"}).Handshake() // fails, because the other end of the pipe is closed
		client.Close()
	}()
	head := make([]byte, 5)
	if _, err := io.ReadFull(server, head); err != nil {
		return nil, fmt.Errorf("make a ClientHello: %w", err)
	}
	hello := append(head, make([]byte, int(head[3])<<8|int(head[4]))...)
	if _, err := io.ReadFull(server, hello[len(head):]); err != nil {
		return nil, fmt.Errorf("make a ClientHello: %w", err)
	}
	return hello, nil
}

// TLSReturning is a client that connects repeatedly. On each connection it resumes its session, sends one request, and closes
// the connection.
type TLSReturning struct {
	Addr, Path string
	Pause      time.Duration // time between two connections
	Patience   time.Duration // maximum duration of a connection
	Duration   time.Duration
	config     *tls.Config // contains the session
}

// TLSReturningResult has the times from the start of a connection to the response.
type TLSReturningResult struct {
	Count  int           `json:"count"`
	Whole  int           `json:"whole"`  // connections among Count with a full handshake, because the server did not resume the session
	Failed int           `json:"failed"` // connections that failed, which are not part of Count
	P50    time.Duration `json:"p50_ns"`
	P99    time.Duration `json:"p99_ns"`
}

// Open obtains a session for the client.
func (r *TLSReturning) Open() error {
	r.config = &tls.Config{InsecureSkipVerify: true, ServerName: "localhost", ClientSessionCache: tls.NewLRUClientSessionCache(1)}
	_, err := r.once()
	return err
}

// Run connects repeatedly for Duration. Open must have been called before. Run returns an error if no connection got a
// response.
func (r *TLSReturning) Run(ctx context.Context) (got TLSReturningResult, err error) {
	var took []time.Duration
	for end := time.Now().Add(r.Duration); (len(took)+got.Failed == 0 || time.Now().Before(end)) && ctx.Err() == nil; time.Sleep(r.Pause) {
		began := time.Now()
		resumed, err := r.once()
		switch {
		case err != nil:
			got.Failed++
			continue
		case !resumed:
			got.Whole++
		}
		took = append(took, time.Since(began))
	}
	if got.Count = len(took); got.Count == 0 {
		return got, errors.Join(ctx.Err(), errors.New("no connection was answered"))
	}
	slices.Sort(took)
	got.P50, got.P99 = took[len(took)/2], took[len(took)*99/100]
	return got, ctx.Err()
}

func (r *TLSReturning) once() (resumed bool, err error) {
	raw, err := net.DialTimeout("tcp", r.Addr, r.Patience)
	if err != nil {
		return false, err
	}
	defer raw.Close()
	if err := raw.SetDeadline(time.Now().Add(r.Patience)); err != nil {
		return false, err
	}
	conn := tls.Client(raw, r.config)
	if _, err := conn.Write(requestFor(r.Addr, r.Path)); err != nil {
		return false, err
	}
	if n, err := conn.Read(make([]byte, 4096)); n == 0 {
		return false, err
	}
	return conn.ConnectionState().DidResume, nil
}
