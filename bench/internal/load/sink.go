package load

import (
	"context"
	"io"
	"net"
)

// Sink receives data and discards it. A load that is sent to a Sink shows how much a load disturbs other servers only
// because it uses the same cores.
type Sink struct{ Addr string }

// Run returns when ctx is done.
func (s Sink) Run(ctx context.Context) error {
	listener, err := net.Listen("tcp", s.Addr)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { listener.Close() })()
	for {
		conn, err := listener.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		go func() {
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { conn.Close() })()
			_, _ = io.Copy(io.Discard, onlyReader{conn})
		}()
	}
}

// onlyReader hides all methods of a connection except Read.
type onlyReader struct{ io.Reader }
